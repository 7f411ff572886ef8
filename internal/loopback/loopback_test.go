package loopback

import (
	"fmt"
	"net"
	"testing"
)

// No port is handed out twice, and none on which something listens.
func TestReserve(t *testing.T) {
	taken := map[int]bool{}
	for range 50 {
		port, release, err := Reserve(8)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		for p := port; p < port+8; p++ {
			if taken[p] || p < first || p > last {
				t.Fatalf("port %d was handed out twice, or is out of range", p)
			}
			taken[p] = true
		}
	}
	port, release, err := Reserve(2)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := lock(port, 2); ok {
		t.Error("a reserved port was handed out again")
	}
	release()
	again, ok := lock(port, 2)
	if !ok {
		t.Fatal("a released port is not handed out")
	}
	again()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, ok := lock(port, 2); ok {
		t.Error("a port on which something listens was handed out")
	}
}
