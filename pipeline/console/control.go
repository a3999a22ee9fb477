package console

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
)

const (
	controlTimeout = 5 * time.Second // of one command to a circuit, which may have to reach a store
	longestCommand = 4 << 10         // bytes
)

// command is what the page asks for. It tells which instance it was shown: neither name nor place says that of a page from before a
// restart or a reload, which must change nothing else.
type command struct {
	Boot    string `json:"boot"`
	ID      int    `json:"id"`      // the pipeline's
	Circuit int    `json:"circuit"` // the instance's
	Action  string `json:"action"`
}

var actions = map[string]func(breaker.Circuit, context.Context) error{
	"force-open":   breaker.Circuit.ForceOpen,
	"force-closed": breaker.Circuit.ForceClosed,
	"auto":         breaker.Circuit.Auto,
	"reset":        breaker.Circuit.Reset,
}

var otherOrigins = http.NewCrossOriginProtection()

// fromThePage says that the request was sent by a page of this origin. Whoever sends neither header is no browser, and can add one.
func fromThePage(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" || r.Header.Get("Sec-Fetch-Site") == "none" {
		return false
	}
	return otherOrigins.Check(r) == nil
}

func (c *Console) control(w http.ResponseWriter, r *http.Request) {
	switch {
	case c.authorize == nil:
		problem(w, http.StatusForbidden, "the console is read-only")
		return
	case r.Method != http.MethodPost:
		notAllowed(w, "POST")
		return
	case !fromThePage(r):
		problem(w, http.StatusForbidden, "the request does not come from the console's own page")
		return
	case !c.authorize(r):
		problem(w, http.StatusForbidden, "you may not control circuits here")
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		problem(w, http.StatusUnsupportedMediaType, "Content-Type is %q: want application/json", clip(kind, longestName))
		return
	}
	var cmd command
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestCommand))
	body.DisallowUnknownFields()
	if err := body.Decode(&cmd); err != nil {
		problem(w, http.StatusBadRequest, "the command cannot be read: %s", clip(err.Error(), longestText))
		return
	}
	if _, err := body.Token(); err != io.EOF {
		problem(w, http.StatusBadRequest, "the command is followed by more: want one JSON object")
		return
	}
	act := actions[cmd.Action]
	if act == nil {
		problem(w, http.StatusBadRequest, "action is %q: want force-open, force-closed, auto or reset", clip(cmd.Action, longestName))
		return
	}
	target, name, stale := c.circuit(&cmd)
	if target == nil {
		problem(w, http.StatusConflict, "%s: nothing was changed; look again", stale)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	if err := act(target, ctx); err != nil {
		problem(w, http.StatusBadGateway, "%s was not done: %s", cmd.Action, textOf(err, error.Error))
		return
	}
	c.journal.note(entry{Kind: "control", Name: name, Text: cmd.Action + " from this console"}, time.Now())
	writeJSON(w, http.StatusOK, encode(map[string]string{"state": target.State().String()}))
}

// circuit finds the breaker that a command was shown, if the pipeline still has that very instance.
func (c *Console) circuit(cmd *command) (found breaker.Circuit, name, stale string) {
	if cmd.Boot != c.boot {
		return nil, "", "the console was restarted since the page was loaded"
	}
	target := c.shown(cmd.ID)
	if target == nil {
		return nil, "", "there is no such pipeline any more"
	}
	for i := range target.layers {
		s := &target.layers[i]
		if s.Breaker == nil || s.Breaker.ID != cmd.Circuit || !has(target.pipeline, s.item) {
			continue
		}
		found, _ = s.item.(breaker.Circuit)
		return found, s.Name, ""
	}
	return nil, "", "the pipeline has no such circuit any more"
}

// has asks the guards for their names on the way, which is their own code.
func has(p *pipeline.Pipeline, wanted any) (found bool) {
	_ = guarded(func() {
		for _, item := range p.Layers() {
			if comparable(item) && item == wanted {
				found = true
				return
			}
		}
	})
	return found
}

func (c *Console) shown(id int) *shown {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.rows {
		if s.row.ID == id {
			return s
		}
	}
	return nil
}
