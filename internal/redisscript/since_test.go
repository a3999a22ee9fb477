package redisscript

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/stretchr/testify/require"
)

var (
	luaCall = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'([^\n]*)`)
	option  = regexp.MustCompile(`'([A-Z]{2,})'`)
)

// Section 13: Redis 6.2 and later. The server tells since when it has each command, and each option, that a script uses.
func TestScriptsUseNothingThatRedis62LacksBySinceOfTheServer(t *testing.T) {
	used := map[string][]string{"EVAL": nil, "EVALSHA": nil, "SUBSCRIBE": nil} // and its options
	for _, pattern := range []string{"../../leaf/*/redis*/*.lua", "../../leaf/*/redis*/*.go", "*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			for _, call := range luaCall.FindAllStringSubmatch(string(text), -1) {
				options := used[call[1]]
				for _, o := range option.FindAllStringSubmatch(call[2], -1) {
					options = append(options, o[1])
				}
				used[call[1]] = options
			}
		}
	}
	require.Greater(t, len(used), 25, "the scan found the scripts")
	require.Contains(t, used["ZRANGE"], "WITHSCORES")
	server := redistest.Shared(t)
	for command, options := range used {
		docs := fields(server.Do(t, "command", "docs", command))
		doc, ok := docs[strings.ToLower(command)]
		require.True(t, ok, command)
		notAfter62(t, command, fields(doc)["since"])
		for _, o := range options {
			if since, ok := sinceOf(fields(doc)["arguments"], o); ok {
				notAfter62(t, command+" "+o, since)
			}
		}
	}
	_, ok := sinceOf(fields(fields(server.Do(t, "command", "docs", "zrange"))["zrange"])["arguments"], "WITHSCORES")
	require.True(t, ok, "options are found")
	since, _ := sinceOf(fields(fields(server.Do(t, "command", "docs", "pexpire"))["pexpire"])["arguments"], "GT")
	require.False(t, atMost62(since), "PEXPIRE GT is of 7.0")
}

func notAfter62(t *testing.T, what string, since any) {
	t.Helper()
	require.True(t, atMost62(since), "%s is there since %v", what, since)
}

// atMost62: nothing is as old as its command.
func atMost62(since any) bool {
	text, _ := since.(string)
	var version []int
	for part := range strings.SplitSeq(cmp.Or(text, "0"), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false
		}
		version = append(version, n)
	}
	return slices.Compare(version, []int{6, 2, 0}) <= 0
}

// sinceOf looks for an option's token; what has no since of its own is as old as what it belongs to.
func sinceOf(arguments any, token string) (since any, ok bool) {
	list, _ := arguments.([]any)
	for _, a := range list {
		f := fields(a)
		if f["token"] == token {
			return f["since"], true
		}
		if inner, ok := sinceOf(f["arguments"], token); ok {
			return cmp.Or(inner, f["since"]), true
		}
	}
	return nil, false
}

// fields is a map as either protocol writes it.
func fields(v any) map[string]any {
	all := map[string]any{}
	switch v := v.(type) {
	case map[any]any:
		for k, x := range v {
			all[k.(string)] = x
		}
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			if k, ok := v[i].(string); ok {
				all[k] = v[i+1]
			}
		}
	}
	return all
}
