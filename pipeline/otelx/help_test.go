package otelx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/otelx"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

// desk is a Telemetry behind the SDK's manual reader.
type desk struct {
	*otelx.Telemetry
	provider *metric.MeterProvider
	reader   *metric.ManualReader
}

func newDesk(t testing.TB, change ...func(*otelx.Config)) desk {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	cfg := otelx.Config{MeterProvider: provider}
	for _, f := range change {
		f(&cfg)
	}
	telemetry, err := otelx.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, telemetry.Close())
		require.NoError(t, provider.Shutdown(context.Background()))
	})
	return desk{telemetry, provider, reader}
}

func (d desk) watch(t testing.TB, ps ...*pipeline.Pipeline) (stop func()) {
	var all []func()
	for _, p := range ps {
		stop, err := d.Watch(p)
		require.NoError(t, err)
		all = append(all, stop)
	}
	return func() {
		for _, stop := range all {
			stop()
		}
	}
}

// read is every series as a line: "name unit{attributes}" and its value.
func (d desk) read(t testing.TB) map[string]string {
	var data metricdata.ResourceMetrics
	require.NoError(t, d.reader.Collect(context.Background(), &data))
	got := map[string]string{}
	for _, scope := range data.ScopeMetrics {
		require.Equal(t, "github.com/fairlead/fairlead/pipeline/otelx", scope.Scope.Name)
		for _, m := range scope.Metrics {
			require.NotEmpty(t, m.Description)
			add := func(kind string, set attribute.Set, value string) {
				got[fmt.Sprintf("%s %s %s{%s}", kind, m.Name, m.Unit, attrs(set.ToSlice()))] = value
			}
			switch points := m.Data.(type) {
			case metricdata.Sum[int64]:
				require.True(t, points.IsMonotonic)
				for _, p := range points.DataPoints {
					add("counter", p.Attributes, fmt.Sprint(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range points.DataPoints {
					add("gauge", p.Attributes, fmt.Sprint(p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range points.DataPoints {
					var filled []string
					for i, n := range p.BucketCounts {
						if n > 0 && i < len(p.Bounds) {
							filled = append(filled, fmt.Sprintf("%d<=%v", n, p.Bounds[i]))
						}
					}
					add("histogram", p.Attributes, fmt.Sprintf("%d calls, %.3fs: %s", p.Count, p.Sum, strings.Join(filled, " ")))
				}
			default:
				t.Fatalf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	return got
}

// attrs leaves out the prefix that all have.
func attrs(all []attribute.KeyValue) string {
	var words []string
	for _, a := range all {
		words = append(words, strings.TrimPrefix(string(a.Key), "resilience.")+"="+a.Value.String())
	}
	return strings.Join(words, " ")
}

// only is the series whose name begins so.
func only(got map[string]string, prefix string) map[string]string {
	some := map[string]string{}
	for k, v := range got {
		if strings.HasPrefix(k, prefix) {
			some[k] = v
		}
	}
	return some
}

func steady(change ...func(*retry.Config)) *retry.Retry {
	cfg := retry.Config{Backoff: retry.Constant(100 * time.Millisecond), Jitter: retry.None, NoBudget: true}
	for _, f := range change {
		f(&cfg)
	}
	return retry.MustNew(cfg)
}

// fails is a callback that fails n times.
func fails(n int, err error) func(context.Context) error {
	runs := 0
	return func(context.Context) error {
		if runs++; runs <= n {
			return err
		}
		return nil
	}
}
