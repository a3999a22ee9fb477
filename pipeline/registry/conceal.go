package registry

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// Neither messages nor Describe show a password: who misplaces one in a document gets its error into a log. Nobody can tell a
// password from any other text, so all that could hold one is concealed, wherever it stands.

// concealment stands for a text of which nothing can be shown.
const concealment = "(concealed: it may hold a password)"

var (
	urlScheme   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	settingName = regexp.MustCompile(`^[a-z_]+=`)
	assigned    = regexp.MustCompile(`(?i)(pass|pwd|secret|token)\w*\s*[=:]`)
	signedIn    = regexp.MustCompile(`:[^@]*@`)
	anchor      = regexp.MustCompile(`(?s)^yaml: unknown anchor '.*' referenced$`)
)

// veiled is a value of a document as a message may show it.
func veiled(value string) string {
	if strings.Contains(value, "@") {
		return concealed(value)
	}
	return veiledName(value)
}

// veiledName is the same for a key or a name, in which an @ alone means nothing: everything else that shows the name shows it.
func veiledName(name string) string {
	if !strings.ContainsAny(name, ":=") { // as good as every name
		return name
	}
	if strings.Contains(name, "://") || assigned.MatchString(name) || signedIn.MatchString(name) {
		return concealed(name)
	}
	return name
}

// veiledAnchor is err without the one text of a document that the parser itself repeats: what follows a *, with which a password
// may begin as well as an alias.
func veiledAnchor(err error) error {
	if err != nil && anchor.MatchString(err.Error()) {
		return errors.New("yaml: a value begins with *, as an alias, and there is no anchor of that name: want it quoted, or the anchor")
	}
	return err
}

// concealed is a URL without its user and without the values of its query. Where it is not certain which part is which, as in a
// password with an @ or a # in it, the scheme alone is left; of what is no URL, nothing.
func concealed(text string) string {
	scheme := urlScheme.FindString(text)
	if scheme == "" {
		return concealment
	}
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" || strings.ContainsAny(u.Path, "@=\" ") {
		return scheme + "…"
	}
	signs, shown := 0, scheme
	if u.User != nil {
		signs, shown = 1, scheme+"…@"
	}
	if strings.Count(text, "@") != signs {
		return scheme + "…"
	}
	shown += u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		shown += "?" + hidden(u.RawQuery)
	}
	return shown
}

// hidden is a query without its values.
func hidden(query string) string {
	settings := strings.Split(query, "&")
	for i, s := range settings {
		settings[i] = settingName.FindString(s) + "…"
	}
	return strings.Join(settings, "&")
}
