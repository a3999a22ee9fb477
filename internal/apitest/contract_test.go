package apitest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBreachesFindWhatIsMissingAndAllowMore(t *testing.T) {
	contract := API{"budget": {"func Left() int", "type Retry interface { Deposit() }"}}
	for _, c := range []struct {
		guards  string
		project API
		want    []string
	}{
		{"kept", API{"budget": {"func Left() int", "type Retry interface { Deposit() }"}}, nil},
		{"more is allowed", API{"budget": {"func Left() int", "func More()", "type Retry interface { Deposit() }"}, "leaf": {}}, nil},
		{"another signature", API{"budget": {"func Left() bool", "type Retry interface { Deposit() }"}}, []string{"budget: the contract has func Left() int"}},
		{"a name less", API{"budget": {"func Left() int"}}, []string{"budget: the contract has type Retry interface { Deposit() }"}},
		{"an interface with a method more breaks who implements it", API{"budget": {"func Left() int", "type Retry interface { Deposit(); More() }"}},
			[]string{"budget: the contract has type Retry interface { Deposit() }"}},
		{"a package less", API{}, []string{"budget: the package does not exist"}},
	} {
		assert.Equal(t, c.want, contract.Breaches(c.project), c.guards)
	}
}

func TestBreachesWaitForARedisPackageToExist(t *testing.T) {
	contract := API{"leaf/breaker/redisbreaker": {"func New()"}}
	assert.Empty(t, contract.Breaches(API{}))
	assert.Len(t, contract.Breaches(API{"leaf/breaker/redisbreaker": {"func Make()"}}), 1)
}

func TestContractIsReadAsItWasWritten(t *testing.T) {
	api := API{"leaf": {"a", "b"}, "leaf/retry": {"c"}}
	dir := t.TempDir()
	require.NoError(t, WriteContract(dir, api))
	got, err := ReadContract(dir)
	require.NoError(t, err)
	assert.Equal(t, api, got)
}

func TestSourceAPIReadsPackagesThatImportEachOther(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"leaf/leaf.go":       "package leaf\nimport \"context\"\ntype Guard interface{ Ask(ctx context.Context) error }\n",
		"leaf/x/x.go":        "package x\nimport \"" + Module + "/leaf\"\nfunc New() leaf.Guard { panic(1) }\n",
		"leaf/x/redisx/r.go": "package redisx\nimport \"" + goRedis + "\"\nfunc New(c redis.UniversalClient) error { panic(1) }\n",
	} {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	api, err := SourceAPI(root, loaded(t))
	require.NoError(t, err)
	assert.Equal(t, API{
		"leaf":          {"type Guard interface { Ask(context.Context) error }"},
		"leaf/x":        {"func New() leaf.Guard"},
		"leaf/x/redisx": {"func New(redis.UniversalClient) error"},
	}, api)
}

func TestDiffTellsBothSides(t *testing.T) {
	assert.Equal(t, []string{"- a", "+ c"}, Diff([]string{"a", "b"}, []string{"b", "c"}))
	assert.Empty(t, Diff([]string{"a"}, []string{"a"}))
}
