// Package browsertest tests the console's page in a real browser. It is a module of its own, so that the driver's dependencies stay
// out of the library's. The tests want chromium, chromium-browser or google-chrome on the PATH (apt-get install chromium).
package browsertest
