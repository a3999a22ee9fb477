package redistest

import "github.com/redis/go-redis/v9/logging"

// What go-redis logs about servers that die is what the tests do to them.
func init() { logging.Disable() }
