package main

import (
	_ "embed"
	"html/template"
	"strings"
)

//go:embed report.html
var page string

var report = template.Must(template.New("report").Funcs(template.FuncMap{
	"grid":    func(o outcome) template.HTML { return template.HTML(grid(o, []row{loadRow, outcomeRow, circuitRow})) },
	"style":   func() template.CSS { return template.CSS(chartStyle) },
	"percent": func(share float64) float64 { return 100 * share },
}).Parse(page))

// html is one page that needs nothing else: no script, no font, no picture from anywhere.
func (d document) html() string {
	var b strings.Builder
	if err := report.Execute(&b, d); err != nil {
		panic(err) // of the template, which the tests run
	}
	return b.String()
}
