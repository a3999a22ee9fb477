package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

// pictures are those of README.md: a few policies, in two scenarios, by seed 1.
var pictures = []struct{ file, scenario, policies string }{
	{"layers.svg", "layers", "naive,budget,full"},
	{"brownout.svg", "brownout", "none,naive,full"},
}

func (s settings) paint(in bubbles) error {
	for _, p := range pictures {
		d, err := settings{seed: 1, scenarios: p.scenario, policies: p.policies}.storms(in)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.pictures, p.file), []byte(picture(d.Scenarios[0])), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// picture is a grid that stands alone, on a ground of its own: nobody knows what page it will be on.
func picture(o outcome) string {
	svg := grid(o, []row{loadRow, outcomeRow})
	first, rest, _ := strings.Cut(svg, "\n")
	return fmt.Sprintf("%s\n<title>%s</title>\n<style>\n%s</style>\n%s\n%s", first, html.EscapeString(o.Title), chartStyle,
		`<rect class="card" width="100%" height="100%" rx="8"/>`, rest)
}
