module github.com/fairlead/fairlead/examples/foreign

go 1.26.0

require (
	github.com/fairlead/fairlead v0.0.0
	github.com/sony/gobreaker/v2 v2.4.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.25.0
	golang.org/x/time v0.16.0
)

require github.com/jonboulle/clockwork v0.5.0 // indirect

replace github.com/fairlead/fairlead => ../..
