package redisbulkhead

import (
	_ "embed"

	"github.com/fairlead/fairlead/internal/redisscript"
)

//go:embed turn.lua
var turnSource string

//go:embed count.lua
var countSource string

var (
	turn  = redisscript.NewScript(turnSource)
	count = redisscript.NewScript(countSource)
)

// What turn tells in its second number.
const (
	flagStale = 1 // it came too late: only what was given back counted
	flagLost  = 2 // the key was there within a lease and is not: the quarantine begins
	// 4 = nobody is admitted; answer.until says so, too
	flagWaiting = 8 // this process stands in the line
)

// answer is what turn returned.
type answer struct {
	now      int64 // the server's, µs
	flags    int64
	granted  int64  // so many of the tokens, the first ones
	live     int64  // permits of the fleet
	until    int64  // the end of the quarantine, µs; 0 = there is none
	released string // a digit per release: 0 = it was not there any more; 1 of each, where none could be late
	added    string // a digit per renewal: 1 = it was not there any more
}

// read takes a reply apart; what does not fit what was asked is an error.
func (t *turnCall) read(r redisscript.Reply) (a answer, err error) {
	const fields = 7
	if r.Len() != fields {
		return a, errReply
	}
	for i, n := range []*int64{&a.now, &a.flags, &a.granted, &a.live, &a.until} {
		if *n, err = r.At(i).Int(); err != nil {
			return a, err
		}
	}
	a.released, a.added = r.At(5).Text(), r.At(6).Text()
	stale := a.flags&flagStale != 0
	switch {
	case len(a.released) != len(t.releases), !stale && len(a.added) != len(t.renewals), stale && a.granted != 0,
		a.granted < 0, a.granted > int64(len(t.tokens)):
		return a, errReply
	}
	return a, nil
}
