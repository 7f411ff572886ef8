package transfer

import (
	"context"
	"net"
	"sync"
	"time"
)

// emulated is a TCP link of a given rate and delay between a client on this machine and an address: a relay that hands
// bytes on when they would have arrived, and takes no more than its queue holds. It loses nothing.
type emulated struct {
	rate  float64       // bytes a second, each way
	delay time.Duration // one way
	queue time.Duration // of bytes at that rate
}

// between listens on the loopback and links connections to the given host:port, until the context ends.
func (e emulated) between(ctx context.Context, to string) (addr *net.TCPAddr, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })
			go e.carry(near, far)
			go e.carry(far, near)
		}
	}()
	return l.Addr().(*net.TCPAddr), nil
}

// segment is data in transit.
type segment struct {
	data []byte
	due  time.Time
}

const segmentBytes = 8 << 10

// carry moves bytes one way.
func (e emulated) carry(from, to net.Conn) {
	defer to.Close()
	_ = from.(*net.TCPConn).SetReadBuffer(64 << 10) // the queue is ours
	pool := sync.Pool{New: func() any { return new([segmentBytes]byte) }}
	way := make(chan segment, int((e.queue+e.delay).Seconds()*e.rate/segmentBytes)+1)
	go func() {
		defer close(way)
		free := time.Now() // when the link has sent all earlier segments
		for {
			buf := pool.Get().(*[segmentBytes]byte)
			n, err := from.Read(buf[:])
			if n > 0 {
				now := time.Now()
				if free.Before(now) {
					free = now
				}
				if wait := free.Sub(now) - e.queue; wait > 0 {
					time.Sleep(wait)
				}
				free = free.Add(time.Duration(float64(n) / e.rate * float64(time.Second)))
				way <- segment{buf[:n], free.Add(e.delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for s := range way {
		time.Sleep(time.Until(s.due))
		if _, err := to.Write(s.data); err != nil {
			_ = from.Close()
			for range way { // the connection is closed: the data is dropped
			}
			return
		}
		pool.Put((*[segmentBytes]byte)(s.data[:segmentBytes:segmentBytes]))
	}
}
