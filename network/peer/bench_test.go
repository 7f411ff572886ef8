package peer

import (
	"crypto/sha256"
	"io"
	"net"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
)

// The benchmarks move benchBytes over loopback, both ends in this process. The first two are what Fetch is measured
// against.
const benchBytes = 64 << 20

func BenchmarkPlainTCP(b *testing.B) {
	data := blobtest.Data(1, benchBytes)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(data)
			_ = c.Close()
		}
	}()
	receiveHashed(b, func() (io.ReadCloser, error) { return net.Dial("tcp", l.Addr().String()) })
}

func BenchmarkPlainStream(b *testing.B) {
	data := blobtest.Data(1, benchBytes)
	source, sink := start(b, Config{}), start(b, Config{})
	source.host.SetStreamHandler("/plain", func(s network.Stream) {
		_, _ = s.Write(data)
		_ = s.Close()
	})
	if err := sink.Connect(b.Context(), source.Addrs()[0]); err != nil {
		b.Fatal(err)
	}
	receiveHashed(b, func() (io.ReadCloser, error) {
		s, err := sink.host.NewStream(b.Context(), source.ID(), "/plain")
		if err == nil {
			_, err = s.Write(nil) // opens it
		}
		return s, err
	})
}

// receiveHashed reads and hashes a connection a MiB at a time.
func receiveHashed(b *testing.B, open func() (io.ReadCloser, error)) {
	b.SetBytes(benchBytes)
	buf := make([]byte, blob.LeafBytes)
	for b.Loop() {
		c, err := open()
		if err != nil {
			b.Fatal(err)
		}
		total := 0
		for {
			n, err := io.ReadFull(c, buf)
			sha256.Sum256(buf[:n])
			total += n
			if err != nil {
				break
			}
		}
		_ = c.Close()
		if total != benchBytes {
			b.Fatalf("%d bytes arrived", total)
		}
	}
}

func BenchmarkFetch(b *testing.B) {
	data := blobtest.Data(1, benchBytes)
	memory := func(*testing.B) blob.Store { return blob.NewMemory() }
	disk := func(b *testing.B) blob.Store {
		s, err := blob.OpenDisk(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		name   string
		peers  int
		store  func(*testing.B) blob.Store
		listen string
	}{
		{"memory-1", 1, memory, "/ip4/127.0.0.1/tcp/0"},
		{"memory-3", 3, memory, "/ip4/127.0.0.1/tcp/0"},
		{"memory-1-quic", 1, memory, "/ip4/127.0.0.1/udp/0/quic-v1"},
		{"disk-1", 1, disk, "/ip4/127.0.0.1/tcp/0"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var from []string
			for range c.peers {
				h := start(b, Config{Store: c.store(b), Listen: []string{c.listen}})
				put(b, h, data)
				from = append(from, h.Addrs()...)
			}
			sink := start(b, Config{Store: c.store(b), Listen: []string{c.listen}})
			root := blob.Of(data)
			b.SetBytes(benchBytes)
			for b.Loop() {
				if _, err := sink.Fetch(b.Context(), root, from); err != nil {
					b.Fatal(err)
				}
				if err := sink.config.Store.Delete(b.Context(), root); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
