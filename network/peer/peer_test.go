package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
)

// start returns a host on loopback, closed with the test. Its times suit a test.
func start(t testing.TB, config Config) *Host {
	t.Helper()
	if config.Key == nil {
		key, err := GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		config.Key = key
	}
	if config.Store == nil {
		config.Store = blob.NewMemory()
	}
	h, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// holder returns a host that has the blob.
func holder(t testing.TB, data []byte) *Host {
	t.Helper()
	h := start(t, Config{})
	put(t, h, data)
	return h
}

func put(t testing.TB, h *Host, data []byte) blob.CID {
	t.Helper()
	c, err := h.config.Store.Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func addrs(hosts ...*Host) (list []string) {
	for _, h := range hosts {
		list = append(list, h.Addrs()...)
	}
	return list
}

func wantFetch(t testing.TB, h *Host, data []byte, from []string) {
	t.Helper()
	c := blob.Of(data)
	got, err := h.Fetch(t.Context(), c, from)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("Fetch: %d bytes of %d, %v", len(got), len(data), err)
	}
	if has, err := h.config.Store.Has(t.Context(), c); err != nil || !has {
		t.Fatalf("the store has the blob: %v, %v", has, err)
	}
}

func TestIdentity(t *testing.T) {
	seed := [32]byte{1, 2, 3}
	a, b := KeyFromSeed(seed), KeyFromSeed(seed)
	if !a.Equals(b) {
		t.Fatal("two keys of one seed")
	}
	h := start(t, Config{Key: a})
	if !h.ID().MatchesPrivateKey(b) {
		t.Error("the ID is not that of the key")
	}
	if len(h.Addrs()) != 2 {
		t.Errorf("addresses: %v", h.Addrs())
	}
	for _, addr := range h.Addrs() {
		if !strings.HasSuffix(addr, "/p2p/"+h.ID().String()) {
			t.Errorf("address %s", addr)
		}
	}
	if _, err := New(Config{Key: a}); err == nil {
		t.Error("a host without a store")
	}
}

func TestConnect(t *testing.T) {
	a, b := start(t, Config{}), start(t, Config{})
	for _, addr := range b.Addrs() {
		if err := a.Connect(t.Context(), addr); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "localhost", "/ip4/127.0.0.1/tcp/1", a.Addrs()[0] + "x"} {
		if err := b.Connect(t.Context(), bad); err == nil {
			t.Errorf("connected to %q", bad)
		}
	}
}

// TestTCPFirst checks that blobs go over TCP when a peer offers both.
func TestTCPFirst(t *testing.T) {
	a, b := start(t, Config{}), start(t, Config{})
	addr := b.Addrs()
	if err := a.Connect(t.Context(), addr[1]); err != nil {
		t.Fatal(err)
	}
	c := start(t, Config{})
	for _, x := range addr {
		info, err := parseAddr(x)
		if err != nil {
			t.Fatal(err)
		}
		c.host.Peerstore().AddAddrs(info.ID, info.Addrs, addrTTL)
	}
	conn, err := c.host.Network().DialPeer(t.Context(), b.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.RemoteMultiaddr().String(); !strings.Contains(got, "/tcp/") {
		t.Errorf("connected over %s", got)
	}
}

func TestFetch(t *testing.T) {
	for _, size := range []int{0, 10, blob.LeafBytes, blob.LeafBytes + 1, 20*blob.LeafBytes + 7} {
		data := blobtest.Data(1, size)
		source, sink := holder(t, data), start(t, Config{})
		wantFetch(t, sink, data, addrs(source))
		sent, received := source.Traffic()
		gotSent, gotReceived := sink.Traffic()
		if sent < uint64(size) || sent > uint64(size)+4096 || gotReceived != sent || gotSent != received {
			t.Errorf("%d bytes: source sent %d and received %d, sink sent %d and received %d", size, sent, received, gotSent, gotReceived)
		}
		wantFetch(t, sink, data, nil) // from its own store now
	}
}

func TestFetchOverQUIC(t *testing.T) {
	data := blobtest.Data(1, 3*blob.LeafBytes)
	source := start(t, Config{Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}})
	put(t, source, data)
	wantFetch(t, start(t, Config{}), data, addrs(source))
}

// TestFetchFromSeveral checks that every holder gives its part, and none of it twice.
func TestFetchFromSeveral(t *testing.T) {
	data := blobtest.Data(2, 64*blob.LeafBytes)
	holders := []*Host{holder(t, data), holder(t, data), holder(t, data)}
	sink := start(t, Config{Hedge: time.Minute})
	wantFetch(t, sink, data, addrs(holders...))
	total := uint64(0)
	for i, h := range holders {
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
	data := blobtest.Data(4, 2*blob.LeafBytes)
	empty := start(t, Config{})
	sink := start(t, Config{})
	for _, c := range []blob.CID{blob.Of(data), blob.Of(data[:9])} {
		_, err := sink.Fetch(t.Context(), c, addrs(empty))
		var fetch *FetchError
		if !errors.Is(err, ErrNotFound) || !errors.As(err, &fetch) || len(fetch.Tried) != 1 || fetch.Tried[0].Peer != empty.ID().String() {
			t.Errorf("Fetch: %v", err)
		}
		if _, err := sink.Fetch(t.Context(), c, nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("Fetch from nobody: %v", err)
		}
		if _, err := sink.Fetch(t.Context(), c, addrs(sink)); !errors.Is(err, ErrNotFound) {
			t.Errorf("Fetch from itself: %v", err)
		}
	}
	if _, err := sink.Fetch(t.Context(), blob.CID{}, addrs(empty)); !errors.Is(err, blob.ErrBadCID) {
		t.Errorf("Fetch of no CID: %v", err)
	}
}

// TestFetchFallsBack has a holder among peers that are gone, empty or no addresses at all.
func TestFetchFallsBack(t *testing.T) {
	data := blobtest.Data(5, 4*blob.LeafBytes)
	gone := start(t, Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}}) // where a dial is refused at once
	from := append([]string{"nonsense"}, addrs(gone, start(t, Config{}), holder(t, data))...)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	sink := start(t, Config{})
	wantFetch(t, sink, data, from)

	_, err := sink.Fetch(t.Context(), blob.Of(data[:5]), from[:2])
	var fetch *FetchError
	if !errors.As(err, &fetch) || len(fetch.Tried) != 2 || errors.Is(err, ErrNotFound) {
		t.Errorf("Fetch from a peer that is gone: %v", err)
	}
}

// TestServe checks that a blob that is withheld answers like one that is absent, byte for byte, and is served later.
func TestServe(t *testing.T) {
	data := blobtest.Data(6, 3*blob.LeafBytes)
	small := data[:100]
	released := make(chan struct{})
	source := start(t, Config{Serve: func(blob.CID) bool {
		select {
		case <-released:
			return true
		default:
			return false
		}
	}})
	put(t, source, data)
	put(t, source, small)
	ask := start(t, Config{})
	if err := ask.Connect(t.Context(), source.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	absent := blobtest.Data(7, 3*blob.LeafBytes)
	for _, r := range []struct{ from, to uint32 }{{0, 0}, {0, 1}, {1, 3}, {9, 19}} {
		for _, pair := range [][2][]byte{{data, absent}, {small, absent[:100]}} {
			withheld := exchange(t, ask, source, request{blob.Of(pair[0]).Bytes(), r.from, r.to}.encode())
			missing := exchange(t, ask, source, request{blob.Of(pair[1]).Bytes(), r.from, r.to}.encode())
			if !bytes.Equal(withheld, missing) || !bytes.Equal(withheld, []byte{statusNotFound}) {
				t.Errorf("leaves %d to %d: withheld answers %v, absent %v", r.from, r.to, withheld, missing)
			}
		}
	}
	if _, err := ask.Fetch(t.Context(), blob.Of(data), addrs(source)); !errors.Is(err, ErrNotFound) {
		t.Errorf("Fetch of a withheld blob: %v", err)
	}
	close(released)
	wantFetch(t, ask, data, addrs(source))
}

// exchange sends raw bytes over a blob stream and returns all that comes back.
func exchange(t *testing.T, from, to *Host, message []byte) []byte {
	t.Helper()
	s, err := from.host.NewStream(t.Context(), to.ID(), Protocol)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Reset()
	if _, err := s.Write(message); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(s)
	if err != nil {
		return nil // reset
	}
	return answer
}

// TestHostileRequests sends a server what no client of ours does.
func TestHostileRequests(t *testing.T) {
	data := blobtest.Data(8, 3*blob.LeafBytes)
	source, ask := holder(t, data), start(t, Config{})
	if err := ask.Connect(t.Context(), source.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	root := blob.Of(data).Bytes()
	for name, c := range map[string]struct {
		message []byte
		want    []byte
	}{
		"beyond the end":   {request{root, 2, 4}.encode(), []byte{statusRefused}},
		"backwards":        {request{root, 2, 1}.encode(), []byte{statusRefused}},
		"empty range":      {request{root, 1, 1}.encode(), []byte{statusRefused}},
		"long range":       {request{root, 0, maxRange + 1}.encode(), []byte{statusRefused}},
		"greatest range":   {request{root, 1<<32 - 2, 1<<32 - 1}.encode(), []byte{statusRefused}},
		"no root":          {request{nil, 0, 1}.encode(), []byte{statusRefused}},
		"not a root":       {request{[]byte("root"), 0, 1}.encode(), []byte{statusRefused}},
		"not CBOR":         {[]byte{0, 1, 0xff}, []byte{statusRefused}},
		"no bytes":         {[]byte{0, 0}, []byte{statusRefused}},
		"too long":         {binary.BigEndian.AppendUint16(nil, maxRequestBytes+1), nil},
		"cut off":          {[]byte{0, 9, 1}, nil},
		"nothing":          {nil, []byte{}},
		"two bad in a row": {[]byte{0, 0, 0, 0}, []byte{statusRefused, statusRefused}},
	} {
		if got := exchange(t, ask, source, c.message); !bytes.Equal(got, c.want) {
			t.Errorf("%s: answer %v, want %v", name, got, c.want)
		}
	}
	wantFetch(t, ask, data, addrs(source))
}

// impostor makes a host answer every request with what answer writes.
func impostor(t *testing.T, answer func(w io.Writer, r request)) *Host {
	t.Helper()
	h := start(t, Config{})
	h.host.SetStreamHandler(Protocol, func(s network.Stream) {
		defer s.Close()
		for {
			body, err := readRequest(s)
			if err != nil {
				return
			}
			r, _, err := parseRequest(body)
			if err != nil {
				return
			}
			answer(s, r)
		}
	})
	return h
}

func frame(data []byte) []byte {
	b := append(make([]byte, frameHead), data...)
	putFrameHead(b)
	return b
}

// answerWith serves data as an honest host does, but passes every leaf through change.
func answerWith(data []byte, change func(i int, leaf []byte) []byte) func(io.Writer, request) {
	m := blob.Describe(data)
	return func(w io.Writer, r request) {
		_, _ = w.Write([]byte{statusOK})
		if r.manifest() {
			_, _ = w.Write(frame(m.Encode()))
		}
		for i := int(r.From); i < int(r.To); i++ {
			lo := i * blob.LeafBytes
			_, _ = w.Write(frame(change(i, bytes.Clone(data[lo:lo+m.LeafSize(i)]))))
		}
	}
}

// TestHostilePeers checks that whatever one peer sends, the result is right if another is honest, that the liar is
// named if none is, and that it is never asked again.
func TestHostilePeers(t *testing.T) {
	data := blobtest.Data(9, 12*blob.LeafBytes+3)
	flip := func(_ int, leaf []byte) []byte { leaf[len(leaf)-1] ^= 1; return leaf }
	for name, answer := range map[string]func(io.Writer, request){
		"bad leaf":     answerWith(data, flip),
		"short leaf":   answerWith(data, func(_ int, leaf []byte) []byte { return leaf[1:] }),
		"empty leaf":   answerWith(data, func(int, []byte) []byte { return nil }),
		"long leaf":    answerWith(data, func(_ int, leaf []byte) []byte { return append(leaf, make([]byte, blob.LeafBytes)...) }),
		"other blob":   answerWith(blobtest.Data(10, len(data)), func(_ int, leaf []byte) []byte { return leaf }),
		"huge frame":   func(w io.Writer, _ request) { _, _ = w.Write([]byte{statusOK, 255, 255, 255, 255}) },
		"bad status":   func(w io.Writer, _ request) { _, _ = w.Write([]byte{99}) },
		"bad manifest": func(w io.Writer, _ request) { _, _ = w.Write(append([]byte{statusOK}, frame([]byte{1, 2, 3})...)) },
	} {
		t.Run(name, func(t *testing.T) {
			liar := impostor(t, answer)
			sink := start(t, Config{})
			c := blob.Of(data)
			if _, err := sink.Fetch(t.Context(), c, addrs(liar)); !errors.Is(err, ErrHostile) {
				t.Fatalf("Fetch from the liar alone: %v", err)
			}
			if !sink.isHostile(liar.ID()) {
				t.Error("the liar was not dropped")
			}
			if has, err := sink.config.Store.Has(t.Context(), c); err != nil || has {
				t.Errorf("the store has the blob: %v, %v", has, err)
			}
			wantFetch(t, sink, data, addrs(liar, holder(t, data)))
		})
	}
}

// TestHostileAmongHonest meets the liar in the middle of a transfer from three.
func TestHostileAmongHonest(t *testing.T) {
	data := blobtest.Data(11, 40*blob.LeafBytes)
	liar := impostor(t, answerWith(data, func(i int, leaf []byte) []byte { leaf[i] ^= 1; return leaf }))
	sink := start(t, Config{})
	wantFetch(t, sink, data, addrs(liar, holder(t, data), holder(t, data)))
}

// TestStalled has a peer that takes a request and never answers: others are asked for what it owes.
func TestStalled(t *testing.T) {
	for _, size := range []int{10, 9 * blob.LeafBytes} {
		data := blobtest.Data(12, size)
		silent := impostor(t, func(io.Writer, request) {})
		sink := start(t, Config{Hedge: 20 * time.Millisecond, Stall: time.Minute})
		wantFetch(t, sink, data, addrs(silent, holder(t, data)))
	}
	sink := start(t, Config{Stall: time.Millisecond})
	silent := impostor(t, func(io.Writer, request) {})
	_, err := sink.Fetch(t.Context(), blob.Of(nil), addrs(silent))
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("Fetch from a silent peer: %v", err)
	}
}

// TestFailing has a peer that breaks off in the middle of every answer: the blob arrives leaf by leaf all the same.
func TestFailing(t *testing.T) {
	data := blobtest.Data(13, 6*blob.LeafBytes)
	honest := answerWith(data, func(_ int, leaf []byte) []byte { return leaf })
	h := start(t, Config{})
	h.host.SetStreamHandler(Protocol, func(s network.Stream) {
		body, err := readRequest(s)
		if err == nil {
			r, _, _ := parseRequest(body)
			r.To = min(r.To, r.From+1)
			honest(s, r)
		}
		_ = s.Close()
	})
	wantFetch(t, start(t, Config{}), data, addrs(h))
}

func TestBusy(t *testing.T) {
	busy := impostor(t, func(w io.Writer, _ request) { _, _ = w.Write([]byte{statusBusy}) })
	sink := start(t, Config{})
	if _, err := sink.Fetch(t.Context(), blob.Of(nil), addrs(busy)); !errors.Is(err, ErrBusy) {
		t.Errorf("Fetch from a busy peer: %v", err)
	}
	if sink.isHostile(busy.ID()) {
		t.Error("a busy peer was dropped")
	}
}

func TestTooLarge(t *testing.T) {
	data := blobtest.Data(14, 3*blob.LeafBytes)
	sink := start(t, Config{MaxBlob: 2 * blob.LeafBytes})
	if _, err := sink.Fetch(t.Context(), blob.Of(data), addrs(holder(t, data))); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("Fetch: %v", err)
	}
}

func TestCancel(t *testing.T) {
	asked := make(chan struct{}, 16)
	silent := impostor(t, func(io.Writer, request) { asked <- struct{}{} })
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
		closing.cancel()
	}()
	if _, err := closing.Fetch(t.Context(), blob.Of(nil), addrs(silent)); !errors.Is(err, ErrClosed) {
		t.Errorf("Fetch of a closed host: %v", err)
	}
}

// TestShared starts several fetches of one blob at once: its bytes arrive once.
func TestShared(t *testing.T) {
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
	half.host.SetStreamHandler(Protocol, func(s network.Stream) {
		for {
			body, err := readRequest(s)
			if err != nil {
				return
			}
			r, _, _ := parseRequest(body)
			honest(s, r)
		}
	})
	first := start(t, Config{Store: open()})
	if _, err := first.Fetch(ctx, blob.Of(data), addrs(half)); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted Fetch: %v", err)
	}
	second := start(t, Config{Store: open()})
	wantFetch(t, second, data, addrs(holder(t, data)))
	if _, received := second.Traffic(); received > 16*blob.LeafBytes {
		t.Errorf("the second fetch took %d bytes of %d", received, len(data))
	}
}

// TestRepair fetches a blob whose stored copy is damaged.
func TestRepair(t *testing.T) {
	data := blobtest.Data(17, 2*blob.LeafBytes+1)
	sink := start(t, Config{Store: damaged{Store: blob.NewMemory(), once: new(bool)}})
	put(t, sink, data)
	wantFetch(t, sink, data, addrs(holder(t, data)))
}

// damaged is a store whose first Get finds the blob corrupt.
type damaged struct {
	blob.Store
	once *bool
}

func (d damaged) Get(ctx context.Context, c blob.CID) ([]byte, error) {
	if !*d.once {
		*d.once = true
		return nil, blob.ErrCorrupt
	}
	return d.Store.Get(ctx, c)
}

// TestStoreFails checks that a failure of our own store is not blamed on the peer.
func TestStoreFails(t *testing.T) {
	full := errors.New("disk is full")
	sink := start(t, Config{Store: failing{blob.NewMemory(), full}})
	source := holder(t, []byte("x"))
	if _, err := sink.Fetch(t.Context(), blob.Of([]byte("x")), addrs(source)); !errors.Is(err, full) {
		t.Errorf("Fetch into a full store: %v", err)
	}
	if sink.isHostile(source.ID()) {
		t.Error("the peer was blamed")
	}
}

type failing struct {
	blob.Store
	err error
}

func (f failing) Put(context.Context, []byte) (blob.CID, error) { return blob.CID{}, f.err }
