package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assets embed.FS

// pages is the embedded files by name.
type pages map[string]file

type file struct {
	name, tag string
	body      []byte
}

// Files that only a page with controls has. The page itself is put together of its parts once.
var forControl = map[string]bool{"control.js": true, "control.css": true}

const (
	indexPart     = "index.html"
	controlPart   = "control.html"
	controlledPad = "<!-- control -->" // where controlPart goes
)

// loadPages reads what was compiled in: an error would be the build's.
func loadPages() pages {
	all := pages{}
	sub, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err)
	}
	entries, err := fs.ReadDir(sub, ".")
	if err != nil {
		panic(err)
	}
	parts := map[string][]byte{}
	for _, e := range entries {
		b, err := fs.ReadFile(sub, e.Name())
		if err != nil {
			panic(err)
		}
		parts[e.Name()] = b
	}
	index, control := parts[indexPart], parts[controlPart]
	delete(parts, indexPart)
	delete(parts, controlPart)
	for name, b := range parts {
		all[name] = newFile(name, b)
	}
	all["read-only"] = newFile(indexPart, bytes.ReplaceAll(index, []byte(controlledPad), nil))
	all["controlled"] = newFile(indexPart, bytes.ReplaceAll(index, []byte(controlledPad), control))
	return all
}

func newFile(name string, b []byte) file {
	sum := sha256.Sum256(b)
	return file{name: name, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, body: b}
}

func (p pages) index(controls bool) file {
	if controls {
		return p["controlled"]
	}
	return p["read-only"]
}

func (p pages) serve(w http.ResponseWriter, r *http.Request, name string, control bool) {
	f, ok := p[name]
	if !ok || f.name != name || forControl[name] && !control {
		http.NotFound(w, r)
		return
	}
	f.serve(w, r)
}

// serve lets the browser keep a file, and ask each time whether it is still the one.
func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache, private")
	h.Set("Content-Type", contentType(f.name))
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.body))
}

// contentType does not depend on the machine's own tables.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}
