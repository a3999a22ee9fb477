package apitest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLinesTellEachExportedThingOnce(t *testing.T) {
	pkg := compiled(t, Module+"/p", `package p
const Off = -1
const (
	Closed State = iota
	Open
	hidden
)
const Header = "X-\"Q\""
var Err error
var Full, none = Jitter{}, 1
type State uint8
func (s State) String() string
type Jitter struct { kind uint8 }
type Config struct {
	Name, Other string `+"`json:\"name\"`"+`
	If func(err error) (again bool)
	Many []*State
	ByName map[string]chan int
	secret int
}
type base struct{ Shown int }
func (b *base) Reset()
type Derived struct { base }
func (d Derived) Get() (value int, ok bool)
func (d *Derived) put()
type Guard interface { Other; Admit(name string, n ...int) error }
type Other interface { Leave(); private() }
type Empty interface{}
type Same = State
type Func func(a, b int)
type Late[T any] struct { Told func(v T, err error) }
func (l *Late[T]) Tell(v T)
func Keyed[K comparable, G Guard](max int, key func(k K) G, rest ...State) (a, b Guard)
func internal()
`, nil)
	assert.Equal(t, []string{
		"const Closed State = 0",
		`const Header = "X-\"Q\""`,
		"const Off = -1",
		"const Open State = 1",
		"func Keyed[K comparable, G Guard](int, func(K) G, ...State) (Guard, Guard)",
		"method (*Derived) Reset()",
		"method (*Late) Tell(T)",
		"method (Derived) Get() (int, bool)",
		"method (State) String() string",
		"type Config struct",
		"type Config struct, ByName map[string]chan int",
		"type Config struct, If func(error) bool",
		"type Config struct, Many []*State",
		"type Config struct, Name string",
		"type Config struct, Name tagged `json:\"name\"`",
		"type Config struct, Other string",
		"type Config struct, Other tagged `json:\"name\"`",
		"type Derived struct",
		"type Empty interface {}",
		"type Func func(int, int)",
		"type Guard interface { Admit(string, ...int) error; Leave(); private() }",
		"type Jitter struct",
		"type Late[T any] struct",
		"type Late[T any] struct, Told func(T, error)",
		"type Other interface { Leave(); private() }",
		"type Same = State",
		"type State uint8",
		"var Err error",
		"var Full Jitter",
	}, Lines(pkg))
}

func TestLinesDoNotChangeWithParameterNames(t *testing.T) {
	a := compiled(t, Module+"/p", "package p\nfunc F(a int, f func(b int) (c error)) (d string, e error)", nil)
	b := compiled(t, Module+"/p", "package p\nfunc F(int, func(int) error) (string, error)", nil)
	assert.Equal(t, Lines(a), Lines(b))
}

func TestLeaksFindTypesThatNoUserCanName(t *testing.T) {
	p := loaded(t)
	pkg := compiled(t, Module+"/p", `package p
import ("time"; "github.com/fairlead/fairlead/internal/clock"; "github.com/fairlead/fairlead/internal/reading"; "github.com/fairlead/fairlead/internal/ended"; "github.com/fairlead/fairlead/internal/toggle")
func Open(d time.Duration) error
func Leak(c clock.Clock) error
func (L) OursAt(now reading.Instant)
func (L) OursToo(ended.Asked) error
func (l L) OursAsWell(s toggle.Switch) L
func At(now reading.Instant)
type L struct{}
`, p)
	api := API{"p": Lines(pkg)}
	assert.Equal(t, []string{
		"p: func At(" + Module + "/internal/reading.Instant)", // a method alone may be between us
		"p: func Leak(" + Module + "/internal/clock.Clock) error",
	}, api.Leaks())
}
