// Package session opens connections to a network, as somebody who signs or as a reader.
// It holds no state of its own, and decides nothing.
package session
