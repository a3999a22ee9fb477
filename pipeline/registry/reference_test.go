package registry

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

const referencePath = "../../examples/config/resilience.yaml"

// reference is examples/config/resilience.yaml: the comment of each key, by "section.key".
func reference(t *testing.T) (text string, comments map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(referencePath)
	require.NoError(t, err)
	comments = map[string]string{}
	line := regexp.MustCompile(`^( +)(?:# )?([a-z-]+):(.*)$`)
	section := ""
	for l := range strings.Lines(string(raw)) {
		m := line.FindStringSubmatch(strings.TrimRight(l, "\n"))
		if m == nil {
			continue
		}
		_, comment, commented := strings.Cut(m[3], "# ")
		switch {
		case len(m[1]) == 2 && !commented:
			section = m[2]
		case len(m[1]) == 2:
			comments[m[2]] = comment
		case len(m[1]) == 6, section == "store" && len(m[1]) == 4:
			comments[section+"."+m[2]] = comment
		}
	}
	return string(raw), comments
}

// bareDocument is the same sections with what is required alone.
const bareDocument = `
resilience:
  store: {redis: "redis://127.0.0.1:1"}
  retry: { a: {} }
  retry-budget: { ratio: {}, pool: { capacity: 100 } }
  circuit-breaker: { a: { shared: SHARED } }
  rate-limiter: { a: { refill-rate: 10, shared: SHARED } }
  bulkhead: { a: { max-concurrent: 10, shared: SHARED } }
  time-limiter: { a: { timeout: 2s } }
  cooldown: { a: { shared: SHARED } }
  pipelines: { a: { retry: a, circuit-breaker: a } }
`

// defaults is what the code does where a document says nothing, by "section.key".
func defaults(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"enabled": "true"}
	for _, shared := range []string{"false", "true"} {
		d := loaded(t, strings.ReplaceAll(bareDocument, "SHARED", shared)).Describe()
		require.True(t, d.Enabled)
		for _, s := range d.Store {
			if s.Default {
				found["store."+s.Key] = s.Value
			}
		}
		for _, i := range d.Instances {
			for _, s := range i.Settings {
				if s.Default || s.Key == "shared" && s.Value == "false" {
					found[i.Section+"."+s.Key] = s.Value
				}
			}
		}
	}
	return found
}

func TestTheReferenceNamesEachDefaultAsTheCodeHasIt(t *testing.T) {
	_, comments := reference(t)
	have := defaults(t)
	says := regexp.MustCompile(`(?:^|; |\()default ([a-z0-9.-]+)`)
	for name, comment := range comments {
		if strings.Contains(comment, "required") && have[name] == "" && !strings.Contains(comment, "default") {
			continue
		}
		m := says.FindStringSubmatch(comment)
		if !assert.NotNil(t, m, "%s names no default: %s", name, comment) {
			continue
		}
		want := have[name]
		if strings.Contains(want, " ") { // what it follows, in words
			assert.Contains(t, comment, "default "+want, name)
			continue
		}
		switch want {
		case "":
			want = "none"
		case "1m0s":
			want = "1m"
		case "5m0s":
			want = "5m"
		case "720h0m0s":
			want = "720h"
		}
		assert.Equal(t, want, m[1], name)
	}
}

func TestTheReferenceHasEveryKeyAndNoOther(t *testing.T) {
	_, comments := reference(t)
	known := []string{"enabled"}
	add := func(section string, keys []string) {
		for _, k := range keys {
			known = append(known, section+"."+k)
		}
	}
	add("store", namesOf(storeKeys))
	add("retry", namesOf(retryKind.keys))
	add("retry-budget", namesOf(budgetKind.keys))
	add("circuit-breaker", namesOf(breakerKind.keys))
	add("rate-limiter", namesOf(limitKind.keys))
	add("bulkhead", namesOf(slotsKind.keys))
	add("time-limiter", namesOf(timeoutKind.keys))
	add("cooldown", namesOf(cooldownKind.keys))
	add("pipelines", namesOf(pipelineKeys))
	var told []string
	for name := range comments {
		told = append(told, name)
	}
	assert.ElementsMatch(t, known, told)
}

// A key that an instance of its own takes, and makes no use of, says so where it stands.
func TestTheReferenceSaysWhichKeysHaveNoEffectWithoutShared(t *testing.T) {
	_, comments := reference(t)
	var say, have []string
	for name, comment := range comments {
		if strings.Contains(comment, "no effect without shared") {
			say = append(say, name)
		}
	}
	const shared = "on-outage: fail-open, instances: 2, idle-ttl: 5h, min-reporters: 2, prefetch: 1, permit-ttl: 5h"
	for section, keys := range map[string][]string{
		"circuit-breaker": namesOf(breakerKind.keys), "rate-limiter": namesOf(limitKind.keys), "bulkhead": namesOf(slotsKind.keys), "cooldown": namesOf(cooldownKind.keys),
	} {
		required := map[string]string{"rate-limiter": "refill-rate: 5", "bulkhead": "max-concurrent: 5"}[section]
		for pair := range strings.SplitSeq(shared, ", ") {
			if key, _, _ := strings.Cut(pair, ":"); slices.Contains(keys, key) {
				r := loaded(t, "resilience: {"+section+": {a: {"+strings.Trim(required+", "+pair, ", ")+"}}}")
				assert.False(t, slices.ContainsFunc(r.Describe().Instances[0].Settings, func(s Setting) bool { return s.Key == key }), "%s %s has an effect", section, key)
				have = append(have, section+"."+key)
			}
		}
	}
	assert.ElementsMatch(t, have, say)
}

func TestTheReferenceLoadsAndSetsWhatItSays(t *testing.T) {
	text, _ := reference(t)
	r := loaded(t, text)
	assert.Equal(t, `billing: timeout "billing" 5s > breaker "payments" > retry "payments" > cooldown "payments" > ratelimit "api" > bulkhead "db" > attempt-timeout "payments" 2s > fn`, r.MustPipeline("billing").String())
	for _, i := range r.Describe().Instances {
		for _, s := range i.Settings {
			if i.Section == "retry-budget" || i.Section == "bulkhead" && s.Key == "max-queue" {
				continue
			}
			assert.False(t, s.Default, "%s %s: the reference leaves out %s", i.Section, i.Name, s.Key)
		}
	}
}

// The defaults that the registry itself has to know, because a leaf holds them in a function or in nothing.
func TestDefaultsThatTheRegistryRepeatsAreTheLeaves(t *testing.T) {
	cfg := retry.MustNew(retry.Config{}).Config()
	assert.Equal(t, cfg.Backoff(1), defaultWait)
	assert.InDelta(t, float64(cfg.Backoff(2))/float64(cfg.Backoff(1)), defaultMultiplier, 0)
	assert.Equal(t, retry.Full, cfg.Jitter)
	r := loaded(t, "resilience: {pipelines: {a: {}}}")
	assert.Equal(t, pipeline.For("a").MustBuild().String(), r.MustPipeline("a").String())
	assert.Equal(t, cfg.MaxRetryAfter, r.MustRetry("x").Config().MaxRetryAfter)
}
