package apitest

import (
	"fmt"
	"go/constant"
	"go/types"
	"slices"
	"strings"
)

// Lines is what pkg exports, one thing a line, sorted.
//
//	const Off = -1
//	func New(Config) (*Retry, error)
//	method (*Retry) Clock() (clockwork.Clock, bool)
//	type Config struct
//	type Config struct, MaxAttempts int
//	type Guard interface { Acquire(context.Context) (Permit, error) }
//	var ErrOpen error
//
// A struct's tag is a line of its own. An interface is one line, since a method more breaks those who implement it.
func Lines(pkg *types.Package) []string {
	w := writer{pkg: pkg}
	for _, name := range pkg.Scope().Names() {
		if obj := pkg.Scope().Lookup(name); obj.Exported() {
			w.object(obj)
		}
	}
	w.lines = slices.DeleteFunc(w.lines, private)
	slices.Sort(w.lines)
	return slices.Compact(w.lines)
}

// private says that a line is a method between the module's own packages: it takes an internal/reading.Instant, a shared
// reading of the clock, an internal/toggle.Switch, or an internal/ended.Asked, of which the type's name is the whole access
// control. Nobody outside can call it on purpose.
func private(line string) bool {
	if !strings.HasPrefix(line, "method ") {
		return false
	}
	for _, key := range []string{"reading.Instant", "toggle.Switch", "ended.Asked"} {
		if key = Module + "/internal/" + key; strings.Contains(line, key+")") || strings.Contains(line, key+",") {
			return true
		}
	}
	return false
}

func (w *writer) object(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		value := obj.Val().ExactString()
		if obj.Val().Kind() == constant.String {
			value = fmt.Sprintf("%q", constant.StringVal(obj.Val()))
		}
		if basic, ok := obj.Type().(*types.Basic); ok && basic.Info()&types.IsUntyped != 0 {
			w.line("const %s = %s", obj.Name(), value)
		} else {
			w.line("const %s %s = %s", obj.Name(), w.typ(obj.Type()), value)
		}
	case *types.Var:
		w.line("var %s %s", obj.Name(), w.typ(obj.Type()))
	case *types.Func:
		sig := obj.Signature()
		w.line("func %s%s%s", obj.Name(), w.typeParams(sig.TypeParams()), w.signature(sig))
	case *types.TypeName:
		w.typeName(obj)
	}
}

func (w *writer) typeName(obj *types.TypeName) {
	if obj.IsAlias() {
		w.line("type %s = %s", obj.Name(), w.typ(types.Unalias(obj.Type())))
		return
	}
	named := obj.Type().(*types.Named)
	head := "type " + obj.Name() + w.typeParams(named.TypeParams())
	switch under := named.Underlying().(type) {
	case *types.Interface:
		w.line("%s %s", head, w.iface(under))
		return // its methods are in the line
	case *types.Struct:
		w.line("%s struct", head)
		for i := range under.NumFields() {
			if f := under.Field(i); f.Exported() {
				w.line("%s struct, %s %s", head, f.Name(), w.typ(f.Type()))
				if tag := under.Tag(i); tag != "" {
					w.line("%s struct, %s%s`%s`", head, f.Name(), tagMark, tag)
				}
			}
		}
	default:
		w.line("%s %s", head, w.typ(under))
	}
	w.methods(named)
}

// tagMark is what marks a line as a field's tag.
const tagMark = " tagged "

// methods is the method set, promoted methods included; (T) where the value has it too.
func (w *writer) methods(named *types.Named) {
	byValue := types.NewMethodSet(named)
	set := types.NewMethodSet(types.NewPointer(named))
	for i := range set.Len() {
		m := set.At(i).Obj().(*types.Func)
		if !m.Exported() {
			continue
		}
		recv := named.Obj().Name()
		if byValue.Lookup(w.pkg, m.Name()) == nil {
			recv = "*" + recv
		}
		w.line("method (%s) %s%s", recv, m.Name(), w.signature(m.Signature()))
	}
}

func (w *writer) iface(t *types.Interface) string {
	if t.NumMethods() == 0 {
		return "interface {}"
	}
	var methods []string
	for i := range t.NumMethods() {
		m := t.Method(i)
		methods = append(methods, m.Name()+w.signature(m.Signature()))
	}
	slices.Sort(methods)
	return "interface { " + strings.Join(methods, "; ") + " }"
}
