// Package transfer measures how fast blobs move between hosts, how long control messages take meanwhile, and the
// speed of training over slow links. Its hosts are on this machine.
package transfer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	libp2p "github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	tls "github.com/libp2p/go-libp2p/p2p/security/tls"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/link"
	"github.com/starling-network/starling/node/benchmark"
)

// Result is what Network measures.
type Result struct {
	Bars    []benchmark.Bar    `json:"bars"`
	MBps    map[string]float64 `json:"mb_per_second"` // megabytes (10^6) over loopback, the best repetition
	CPU     map[string]float64 `json:"mb_per_cpu_second"`
	Control map[string]float64 `json:"control_ms"` // round trips of control messages over the emulated link
	Rounds  []RoundRow         `json:"rounds"`     // share of time in inner steps
	Traffic []TrafficRow       `json:"traffic"`    // bytes of a worker in a round
	Seconds float64            `json:"seconds"`
}

// Options say how thoroughly to measure.
type Options struct {
	Bytes    int           // of a blob that moves over loopback
	Repeat   int           // everything over loopback, in turn
	Link     time.Duration // that control messages are measured for on the emulated link, idle and busy each
	Training uint32        // rounds that are played under virtual time while a worker fails
	Inner    time.Duration // of a round that is played, with the largest batch; 0: as measured on this machine
}

// Quick and Thorough are the options of the command.
var (
	Quick    = Options{Bytes: 64 << 20, Repeat: 6, Link: 5 * time.Second, Training: 4}
	Thorough = Options{Bytes: 256 << 20, Repeat: 9, Link: 30 * time.Second, Training: 25}
)

// Measure measures transfers between two hosts of this process, over loopback and over an emulated link of 100 Mbit/s
// and 40 ms round trip; then how a job fares on links of 100 Mbit/s, under virtual time.
func Measure(ctx context.Context, o Options) (*Result, error) {
	begin := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &Result{MBps: map[string]float64{}, CPU: map[string]float64{}, Control: map[string]float64{}}
	if err := r.loopback(ctx, o); err != nil {
		return nil, fmt.Errorf("benchmark: loopback: %w", err)
	}
	if err := r.control(ctx, o); err != nil {
		return nil, fmt.Errorf("benchmark: emulated link: %w", err)
	}
	if err := r.training(ctx, o); err != nil {
		return nil, fmt.Errorf("benchmark: training: %w", err)
	}
	r.Seconds = benchmark.Rounded(time.Since(begin).Seconds(), 1)
	return r, nil
}

// Ways to move the same bytes.
const (
	plainTCP   = "tcp"         // a TCP connection, hashed with SHA-256
	rawStream  = "libp2p"      // a libp2p stream over TCP and Noise, hashed with SHA-256
	rawOverTLS = "libp2p, tls" // the same over libp2p's own TLS
	blobFetch  = "blob"        // Fetch
)

func (r *Result) loopback(ctx context.Context, o Options) error {
	data := make([]byte, o.Bytes)
	_, _ = rand.Read(data) // never fails
	tcp, err := overTCP(ctx, data)
	if err != nil {
		return err
	}
	stream, err := overStream(ctx, data, libp2p.Security(noise.ID, noise.New))
	if err != nil {
		return err
	}
	overTLS, err := overStream(ctx, data, libp2p.Security(tls.ID, tls.New))
	if err != nil {
		return err
	}
	fetch, err := overFetch(ctx, data)
	if err != nil {
		return err
	}
	ways := []struct {
		name string
		move func() error
	}{{plainTCP, tcp}, {rawStream, stream}, {rawOverTLS, overTLS}, {blobFetch, fetch}}
	for range o.Repeat {
		for _, w := range ways {
			begin := time.Now()
			used, _ := benchmark.Usage()
			if err := w.move(); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			mb := float64(len(data)) / 1e6
			r.MBps[w.name] = max(r.MBps[w.name], benchmark.Rounded(mb/time.Since(begin).Seconds(), 1))
			if after, _ := benchmark.Usage(); after > used {
				r.CPU[w.name] = max(r.CPU[w.name], benchmark.Rounded(mb/(after-used).Seconds(), 1))
			}
		}
	}
	r.Bars = append(r.Bars,
		benchmark.AtLeast("blob transfer over loopback, of the faster of raw libp2p streams (TCP; Noise, TLS) hashed "+
			"with SHA-256",
			r.MBps[blobFetch]/max(r.MBps[rawStream], r.MBps[rawOverTLS]), 0.9),
		benchmark.AtLeast("blob transfer over loopback, of a plain TCP copy hashed with SHA-256",
			r.MBps[blobFetch]/r.MBps[plainTCP],
			0.6),
	)
	return nil
}

var errShort = errors.New("not all bytes arrived")

// hashed reads n bytes, a leaf at a time.
func hashed(in io.ReadCloser, n int) error {
	defer in.Close()
	buf := make([]byte, blob.LeafBytes)
	for n > 0 {
		got, err := io.ReadFull(in, buf[:min(n, len(buf))])
		sha256.Sum256(buf[:got])
		if n -= got; err != nil {
			return errors.Join(errShort, err)
		}
	}
	return nil
}

func overTCP(ctx context.Context, data []byte) (func() error, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
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
	return func() error {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		return hashed(c, len(data))
	}, nil
}

func overStream(ctx context.Context, data []byte, security libp2p.Option) (func() error, error) {
	const plain = "/starling/benchmark/1"
	var ends [2]host.Host
	for i := range ends {
		h, err := libp2p.New(security, libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay(),
			libp2p.DisableMetrics())
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = h.Close() })
		ends[i] = h
	}
	source, sink := ends[0], ends[1]
	source.SetStreamHandler(plain, func(s network.Stream) {
		_, _ = s.Write(data)
		_ = s.Close()
	})
	if err := sink.Connect(ctx, p2p.AddrInfo{ID: source.ID(), Addrs: source.Addrs()}); err != nil {
		return nil, err
	}
	return func() error {
		s, err := sink.NewStream(ctx, source.ID(), plain)
		if err != nil {
			return err
		}
		if _, err := s.Write(nil); err != nil { // opens it
			return err
		}
		return hashed(s, len(data))
	}, nil
}

// pair starts two hosts, of which the first holds data.
func pair(ctx context.Context, data []byte) (source, sink *peer.Host, store *blob.Memory, c blob.CID, err error) {
	var stores [2]*blob.Memory
	var ends [2]*peer.Host
	for i := range ends {
		key, err := peer.GenerateKey()
		if err != nil {
			return nil, nil, nil, c, err
		}
		stores[i] = blob.NewMemory()
		ends[i], err = peer.New(peer.Config{Key: key, Store: stores[i], Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
		if err != nil {
			return nil, nil, nil, c, err
		}
		context.AfterFunc(ctx, func() { _ = ends[i].Close() })
	}
	c, err = stores[0].Put(ctx, data)
	return ends[0], ends[1], stores[1], c, err
}

func overFetch(ctx context.Context, data []byte) (func() error, error) {
	source, sink, store, c, err := pair(ctx, data)
	if err != nil {
		return nil, err
	}
	return func() error {
		if err := store.Delete(ctx, c); err != nil {
			return err
		}
		return sink.Ensure(ctx, c, source.Addrs())
	}, nil
}

// The emulated link.
var access = emulated{rate: 12.5e6, delay: 20 * time.Millisecond, queue: 60 * time.Millisecond}

const pingEvery = 20 * time.Millisecond

// control measures control messages from the holder of a blob to the host that fetches it, without and with the
// transfer.
func (r *Result) control(ctx context.Context, o Options) error {
	data := make([]byte, int(access.rate*(2*o.Link+4*time.Second).Seconds()))
	_, _ = rand.Read(data) // never fails
	source, sink, _, c, err := pair(ctx, data)
	if err != nil {
		return err
	}
	addr, id, _ := strings.Cut(source.Addrs()[0], "/p2p/")
	near, err := access.between(ctx, "127.0.0.1:"+addr[strings.LastIndex(addr, "/")+1:])
	if err != nil {
		return err
	}
	through := fmt.Sprintf("/ip4/127.0.0.1/tcp/%d/p2p/%s", near.Port, id)
	messages, err := sink.Control(ctx, through)
	if err != nil {
		return err
	}
	defer messages.Close()
	idle, err := trips(ctx, messages, o.Link)
	if err != nil {
		return err
	}
	moving, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- sink.Ensure(moving, c, []string{through}) }()
	start, err := trips(ctx, messages, 2*time.Second) // while the pace is searched
	if err != nil {
		return err
	}
	_, before := sink.Traffic()
	begin := time.Now()
	busy, err := trips(ctx, messages, o.Link)
	if err != nil {
		return err
	}
	_, after := sink.Traffic()
	used := float64(after-before) / time.Since(begin).Seconds() / access.rate
	select {
	case err := <-ended:
		return fmt.Errorf("the transfer ended before the measurement: %w", err)
	default:
	}
	for name, trips := range map[string][]time.Duration{"idle": idle, "start": start, "busy": busy} {
		r.Control[name+" p50"], r.Control[name+" p99"] = at(trips, 0.5), at(trips, 0.99)
	}
	r.Bars = append(r.Bars,
		benchmark.Below("control messages during a transfer on 100 Mbit/s, p99, of that of an idle link",
			r.Control["busy p99"]/r.Control["idle p99"], 2),
		benchmark.AtLeast("share of the link that the transfer has meanwhile", used, 0.75),
	)
	return nil
}

// trips measures round trips for a time.
func trips(ctx context.Context, c *link.Control, length time.Duration) (list []time.Duration, err error) {
	for begin := time.Now(); time.Since(begin) < length; {
		trip, err := c.Ping(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, trip)
		time.Sleep(pingEvery)
	}
	return list, nil
}

// at is a quantile in milliseconds.
func at(trips []time.Duration, share float64) float64 {
	slices.Sort(trips)
	return benchmark.Rounded(float64(trips[int(share*float64(len(trips)-1))].Microseconds())/1e3, 1)
}
