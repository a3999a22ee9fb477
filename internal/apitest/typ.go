package apitest

import (
	"fmt"
	"go/types"
	"strings"
)

// writer writes the lines of one package.
type writer struct {
	pkg   *types.Package
	lines []string
}

func (w *writer) line(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// typ is a type as in source, but without parameter names: to rename a parameter changes no API.
func (w *writer) typ(t types.Type) string {
	switch t := t.(type) {
	case *types.Signature:
		return "func" + w.signature(t)
	case *types.Pointer:
		return "*" + w.typ(t.Elem())
	case *types.Slice:
		return "[]" + w.typ(t.Elem())
	case *types.Map:
		return "map[" + w.typ(t.Key()) + "]" + w.typ(t.Elem())
	case *types.Interface:
		if t.NumMethods() > 0 {
			return w.iface(t)
		}
	}
	return types.TypeString(t, w.qualifier)
}

// qualifier is the package's name; an internal package's whole path, which no line should hold.
func (w *writer) qualifier(pkg *types.Package) string {
	switch {
	case pkg == w.pkg || pkg.Path() == w.pkg.Path():
		return ""
	case strings.HasPrefix(pkg.Path(), Module) && !Public(pkg.Path()):
		return pkg.Path()
	}
	return pkg.Name()
}

// signature is what follows a function's name.
func (w *writer) signature(sig *types.Signature) string {
	params := w.tuple(sig.Params(), sig.Variadic())
	switch results := sig.Results(); {
	case results.Len() == 0:
		return "(" + params + ")"
	case results.Len() == 1:
		return "(" + params + ") " + w.typ(results.At(0).Type())
	default:
		return "(" + params + ") (" + w.tuple(results, false) + ")"
	}
}

func (w *writer) tuple(t *types.Tuple, variadic bool) string {
	var parts []string
	for i := range t.Len() {
		part := w.typ(t.At(i).Type())
		if variadic && i == t.Len()-1 {
			part = "..." + strings.TrimPrefix(part, "[]")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func (w *writer) typeParams(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var parts []string
	for i := range list.Len() {
		p := list.At(i)
		parts = append(parts, p.Obj().Name()+" "+w.typ(p.Constraint()))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
