package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/peer/fetch"
	"github.com/starling-network/starling/network/peer/wire"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 10, blob.LeafBytes, blob.LeafBytes + 1, 20*blob.LeafBytes + 7} {
		data := blobtest.Data(1, size)
		source, sink := holder(t, data), start(t, Config{Hedge: time.Minute})
		wantFetch(t, sink, data, addrs(source))
		stop(t, source)
		sent, received := source.Traffic()
		gotSent, gotReceived := sink.Traffic()
		if sent < uint64(size) || sent > uint64(size)+4096 || gotReceived != sent || gotSent != received {
			t.Errorf("%d bytes: source sent %d and received %d, sink sent %d and received %d", size, sent, received, gotSent,
				gotReceived)
		}
		wantFetch(t, sink, data, nil) // from its own store now
	}
}

func TestFetchOverQUIC(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(1, 3*blob.LeafBytes)
	source := start(t, Config{Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}})
	put(t, source, data)
	wantFetch(t, start(t, Config{}), data, addrs(source))
}

// TestFetchFromSeveral checks that every holder gives its part, and none of it twice.
func TestFetchFromSeveral(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(2, 64*blob.LeafBytes)
	holders := []*Host{holder(t, data), holder(t, data), holder(t, data)}
	sink := start(t, Config{Hedge: time.Minute})
	for _, h := range holders {
		if err := sink.Connect(t.Context(), h.Addrs()[0]); err != nil {
			t.Fatal(err)
		}
	}
	wantFetch(t, sink, data, addrs(holders...))
	total := uint64(0)
	for i, h := range holders {
		stop(t, h)
		sent, _ := h.Traffic()
		if sent < 2*blob.LeafBytes {
			t.Errorf("holder %d sent %d bytes", i, sent)
		}
		total += sent
	}
	if _, received := sink.Traffic(); received != total || total > uint64(len(data))+16384 {
		t.Errorf("holders sent %d bytes, %d arrived, for a blob of %d", total, received, len(data))
	}
}

func TestFetchDisk(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(3, 5*blob.LeafBytes+1)
	disks := make([]*blob.Disk, 2)
	for i := range disks {
		var err error
		if disks[i], err = blob.OpenDisk(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	source, sink := start(t, Config{Store: disks[0]}), start(t, Config{Store: disks[1]})
	put(t, source, data)
	wantFetch(t, sink, data, addrs(source))
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(4, 2*blob.LeafBytes)
	empty := start(t, Config{})
	sink := start(t, Config{})
	for _, c := range []blob.CID{blob.Of(data), blob.Of(data[:9])} {
		_, err := sink.Fetch(t.Context(), c, addrs(empty))
		var failed *fetch.Error
		if !errors.Is(err, wire.ErrNotFound) || !errors.As(err, &failed) || len(failed.Tried) != 1 ||
			failed.Tried[0].Peer != empty.ID().String() {
			t.Errorf("Fetch: %v", err)
		}
		if _, err := sink.Fetch(t.Context(), c, nil); !errors.Is(err, wire.ErrNotFound) {
			t.Errorf("Fetch from nobody: %v", err)
		}
		if _, err := sink.Fetch(t.Context(), c, addrs(sink)); !errors.Is(err, wire.ErrNotFound) {
			t.Errorf("Fetch from itself: %v", err)
		}
	}
	if _, err := sink.Fetch(t.Context(), blob.CID{}, addrs(empty)); !errors.Is(err, blob.ErrBadCID) {
		t.Errorf("Fetch of no CID: %v", err)
	}
}

// TestFetchFallsBack has a holder among peers that are gone, empty or no addresses at all.
func TestFetchFallsBack(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(5, 4*blob.LeafBytes)
	gone := start(t, Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}}) // where a dial is refused at once
	from := append([]string{"nonsense"}, addrs(gone, start(t, Config{}), holder(t, data))...)
	stop(t, gone)
	sink := start(t, Config{})
	wantFetch(t, sink, data, from)

	_, err := sink.Fetch(t.Context(), blob.Of(data[:5]), from[:2])
	var failed *fetch.Error
	if !errors.As(err, &failed) || len(failed.Tried) != 2 || errors.Is(err, wire.ErrNotFound) {
		t.Errorf("Fetch from a peer that is gone: %v", err)
	}
}

// asked is a store that tells when a peer wanted a blob that it has not got.
type asked struct {
	blob.Store
	absent chan struct{}
}

func (a asked) Open(ctx context.Context, c blob.CID) (blob.Reader, error) {
	r, err := a.Store.Open(ctx, c)
	if err != nil {
		select {
		case a.absent <- struct{}{}:
		default:
		}
	}
	return r, err
}

// TestFetchAsksAgain has a source that falls silent, and a relay that has the blob only after it was asked for it.
func TestFetchAsksAgain(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(18, 3*blob.LeafBytes)
	silent := impostor(t, func(io.Writer, wire.Request) {})
	absent := make(chan struct{}, 1)
	relay := start(t, Config{Store: asked{blob.NewMemory(), absent}})
	sink := start(t, Config{Hedge: 10 * time.Millisecond})
	go func() {
		<-absent
		put(t, relay, data)
	}()
	wantFetch(t, sink, data, addrs(silent, relay))
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(14, 3*blob.LeafBytes)
	sink := start(t, Config{MaxBlob: 2 * blob.LeafBytes})
	if _, err := sink.Fetch(t.Context(), blob.Of(data), addrs(holder(t, data))); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("Fetch: %v", err)
	}
}

// A caller that says how large a blob may be reads none that is larger, whether it is fetched or stored already, of one
// leaf or of many.
func TestFetchWithin(t *testing.T) {
	t.Parallel()
	for _, size := range []int{blob.LeafBytes / 2, 3 * blob.LeafBytes} {
		data := blobtest.Data(14, size)
		sink, from := start(t, Config{}), addrs(holder(t, data))
		for range 2 {
			if _, err := sink.FetchWithin(t.Context(), blob.Of(data), from, int64(size)-1); !errors.Is(err, blob.ErrTooLarge) {
				t.Errorf("%d bytes: %v", size, err)
			}
			if err := sink.Ensure(t.Context(), blob.Of(data), from); err != nil {
				t.Error(err)
			}
		}
		if b, err := sink.FetchWithin(t.Context(), blob.Of(data), from, int64(size)); err != nil || !bytes.Equal(b, data) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 16)
	silent := impostor(t, func(io.Writer, wire.Request) { asked <- struct{}{} })
	sink := start(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := sink.Fetch(ctx, blob.Of(nil), addrs(silent)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled Fetch: %v", err)
	}
	closing := start(t, Config{})
	go func() {
		<-asked
		closing.life.End()
	}()
	if _, err := closing.Fetch(t.Context(), blob.Of(nil), addrs(silent)); !errors.Is(err, fetch.ErrClosed) {
		t.Errorf("Fetch of a closed host: %v", err)
	}
}

// TestShared starts several fetches of one blob at once: its bytes arrive once.
func TestShared(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(15, 10*blob.LeafBytes)
	source, sink := holder(t, data), start(t, Config{Hedge: time.Minute})
	results := make(chan error)
	for range 4 {
		go func() {
			got, err := sink.Fetch(t.Context(), blob.Of(data), addrs(source))
			if err == nil && !bytes.Equal(got, data) {
				err = errors.New("wrong bytes")
			}
			results <- err
		}()
	}
	for range 4 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if _, received := sink.Traffic(); received > uint64(len(data))+4096 {
		t.Errorf("%d bytes arrived of a blob of %d", received, len(data))
	}
}

// TestResume kills the sink in the middle of a transfer. The next one fetches only what is missing.
func TestResume(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(16, 20*blob.LeafBytes)
	dir := t.TempDir()
	open := func() blob.Store {
		s, err := blob.OpenDisk(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	half := impostor(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	honest := answerWith(data, func(i int, leaf []byte) []byte {
		if i == 12 {
			cancel()
		}
		return leaf
	})
	half.host.SetStreamHandler(wire.Protocol, func(s network.Stream) {
		for {
			body, err := wire.ReadRequest(s)
			if err != nil {
				return
			}
			r, _, _ := wire.ParseRequest(body)
			honest(s, r)
		}
	})
	first := start(t, Config{Store: open()})
	if _, err := first.Fetch(ctx, blob.Of(data), addrs(half)); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted Fetch: %v", err)
	}
	second := start(t, Config{Store: open(), Hedge: time.Minute})
	wantFetch(t, second, data, addrs(holder(t, data)))
	if _, received := second.Traffic(); received > 16*blob.LeafBytes {
		t.Errorf("the second fetch took %d bytes of %d", received, len(data))
	}
}

// TestRepair damages a blob on the disk of its holder. A peer that asks for it fetches it elsewhere, and the holder,
// once it has noticed, fetches the leaf that it lost and no more.
func TestRepair(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(17, 6*blob.LeafBytes+1)
	dir := t.TempDir()
	disk, err := blob.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	holed := start(t, Config{Store: disk})
	path := filepath.Join(dir, put(t, holed, data).String())
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[3*blob.LeafBytes]++
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	sink, whole := start(t, Config{}), holder(t, data)
	if _, err := sink.Fetch(t.Context(), blob.Of(data), addrs(holed)); err == nil || errors.Is(err, wire.ErrHostile) {
		t.Fatalf("Fetch of a damaged blob: %v", err)
	}
	wantFetch(t, sink, data, addrs(holed, whole))
	wantFetch(t, holed, data, addrs(whole))
	stop(t, holed)
	if _, received := holed.Traffic(); received > 2*blob.LeafBytes {
		t.Errorf("%d bytes came to repair one leaf", received)
	}
}

// TestStoreFails checks that a failure of our own store is not blamed on the peer.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	full := errors.New("disk is full")
	sink := start(t, Config{Store: failing{blob.NewMemory(), full}})
	source := holder(t, []byte("x"))
	if _, err := sink.Fetch(t.Context(), blob.Of([]byte("x")), addrs(source)); !errors.Is(err, full) {
		t.Errorf("Fetch into a full store: %v", err)
	}
	if dropped(t, sink, source) {
		t.Error("the peer was blamed")
	}
}

type failing struct {
	blob.Store
	err error
}

func (f failing) Put(context.Context, []byte) (blob.CID, error) { return blob.CID{}, f.err }

// TestFanOut names more holders than are asked at a time, most of them without the blob.
func TestFanOut(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(32, 2*blob.LeafBytes)
	const fanOut = 6 // of package fetch
	var from []string
	for range fanOut + 1 {
		from = append(from, start(t, Config{}).Addrs()...)
	}
	wantFetch(t, start(t, Config{}), data, append(from, holder(t, data).Addrs()...))
}
