package cooldown_test

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/guardtest"
)

func TestConformance(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New: func(testing.TB) leaf.Guard { return cooldown.MustNew(cooldown.Config{Name: "api"}) },
		Refusing: func(t testing.TB) leaf.Guard {
			c := cooldown.MustNew(cooldown.Config{Name: "api", Max: time.Hour})
			c.Hint(t.Context(), time.Hour)
			return c
		},
	})
}
