// Package porttest reserves ports of 127.0.0.1 for tests, by package loopback. It starts nothing.
package porttest

import (
	"fmt"
	"testing"

	"github.com/starling-network/starling/internal/loopback"
)

// Ports returns the first of n consecutive ports on which nothing listens. They are released when the test ends.
func Ports(t testing.TB, n int) int {
	t.Helper()
	port, release, err := loopback.Reserve(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// Address is host:port of one port of Ports.
func Address(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", Ports(t, 1))
}
