// Package loopback hands out ports of 127.0.0.1 to processes that take their addresses as arguments. It does not listen
// on them. Where a program can listen on port 0 and say its address, that is simpler.
package loopback

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
)

// The ports lie below those that Linux gives to outgoing connections and to listeners on port 0 (32768 to 60999), so
// that no other program gets one by chance between its reservation and its use.
const (
	first = 10_000
	last  = 29_999
)

var next = struct {
	sync.Mutex
	port int
}{port: first + os.Getpid()*128%(last-first)}

// Reserve returns the first of n consecutive ports on which nothing listens. No other caller gets one of them, in this
// process or another, until release is called or the process ends.
func Reserve(n int) (port int, release func(), err error) {
	next.Lock()
	defer next.Unlock()
	for tried := 0; tried <= last-first; tried += n {
		if next.port+n-1 > last {
			next.port = first
		}
		port = next.port
		next.port += n
		if release, ok := lock(port, n); ok {
			return port, release, nil
		}
	}
	return 0, nil, fmt.Errorf("loopback: no %d free ports in a row from %d to %d", n, first, last)
}

// lock holds the UDP ports of the same numbers, which the system refuses to other callers and frees with the process.
func lock(port, n int) (release func(), ok bool) {
	var held []net.PacketConn
	release = func() {
		for _, c := range held {
			_ = c.Close()
		}
	}
	for p := port; p < port+n; p++ {
		address := fmt.Sprintf("127.0.0.1:%d", p)
		udp, err := net.ListenPacket("udp", address)
		if err == nil {
			held = append(held, udp)
		}
		tcp, failed := net.Listen("tcp", address)
		if failed == nil {
			failed = tcp.Close()
		}
		if errors.Join(err, failed) != nil {
			release()
			return nil, false
		}
	}
	return release, true
}
