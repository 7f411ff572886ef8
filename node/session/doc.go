// Package session opens connections to a network, with an account that signs or read-only. It holds no state of its
// own, and decides nothing.
package session
