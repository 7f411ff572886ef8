package weights

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	p2p "github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/network/peer"
)

// liar is a host that answers questions as a test says, and serves its store.
func liar(t *testing.T, store blob.Store, answer func(h *peer.Host, q *question) []byte) *node {
	t.Helper()
	h := listen(t, store)
	h.Answer(Protocol, func(_ context.Context, _ peer.ID, body []byte) []byte {
		q, err := parseQuestion(body)
		if err != nil {
			return nil
		}
		return answer(h, q)
	})
	return &node{host: h, store: store}
}

func put(t *testing.T, s blob.Store, data []byte) blob.CID {
	t.Helper()
	c, err := s.Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// offering is a liar that names a head. The head gives each piece the same number of bytes.
func offering(t *testing.T, v []patch.Version, bytes uint32, pieces ...blob.CID) *node {
	h := &patch.Head{Format: 1, From: v[0].Name, To: v[1].Name, Elements: 3000}
	for _, c := range pieces {
		h.Pieces = append(h.Pieces, patch.Piece{Sum: canon.Digest(c.Hash()[2:]), Bytes: bytes})
	}
	s := blob.NewMemory()
	c := put(t, s, h.Encode())
	a := canon.MustMarshal(answer{Known: true, Head: canon.Digest(c.Hash()[2:]),
		Bytes: uint64(len(h.Encode())) + uint64(h.Bytes())})
	return liar(t, s, func(*peer.Host, *question) []byte { return a })
}

// missing is a liar that names a head that no peer has.
func missing(t *testing.T) *node {
	a := canon.MustMarshal(answer{Known: true, Head: canon.Digest{1}, Bytes: 1})
	return liar(t, blob.NewMemory(), func(*peer.Host, *question) []byte { return a })
}

// hasty is a node that waits for a fraction of a second where others wait for seconds.
func hasty(t *testing.T, store blob.Store, held ...patch.Version) *node {
	n := open(t, store, held...)
	n.times = times{bring: 10 * time.Second, question: 1500 * time.Millisecond,
		learns: 100 * time.Millisecond, making: 500 * time.Millisecond, stall: 500 * time.Millisecond}
	return n
}

// first orders holders as a receiver asks them, by taking a new receiver until the first is asked first.
func first(t *testing.T, v patch.Version, liar, honest *node) *node {
	t.Helper()
	for {
		p := hasty(t, blob.NewMemory())
		if newReceiver(p.Exchange, v.Name, v.Name, 0, slices.Concat(addrs(liar), addrs(honest))).order[0] == liar.host.ID() {
			return p
		}
		_ = p.host.Close()
	}
}

func wantNothing(t *testing.T, s blob.Store, but ...blob.CID) {
	t.Helper()
	list, err := s.List(t.Context())
	if err != nil || len(list) != len(but) {
		t.Errorf("%d blobs are stored, and not %d: %v", len(list), len(but), err)
	}
	for _, c := range but {
		if !slices.Contains(list, c) {
			t.Errorf("the blob %s of another was deleted", c)
		}
	}
}

// Peers that name themselves, each other or one twice are asked a few questions, and the honest one after them.
func TestCircle(t *testing.T) {
	v := versions(2, 3000, 0.5)
	var questions atomic.Int64
	var list []*node
	for i := range 4 {
		list = append(list, liar(t, blob.NewMemory(), func(h *peer.Host, _ *question) []byte {
			questions.Add(1)
			a := answer{Known: true, Head: canon.Digest{1}, Bytes: 1}
			id, other := []byte(h.ID()), []byte(list[(i+1)%4].host.ID())
			a.Ask = [][][]byte{{id, other}, {other, other}, {other}, {other}}[i]
			return canon.MustMarshal(a)
		}))
	}
	origin := open(t, blob.NewMemory(), v...)
	p := hasty(t, blob.NewMemory())
	if _, err := p.bring(t.Context(), v[0], v[1], addrs(append(list, origin)...)); err != nil {
		t.Fatal(err)
	}
	if _, err := hasty(t, blob.NewMemory()).bring(t.Context(), v[0], v[1], addrs(list...)); err == nil {
		t.Fatal("a patch that no peer has")
	}
	if n := questions.Load(); n > 2*maxQuestions {
		t.Errorf("%d questions", n)
	}
}

// A head that names blobs which the receiver has does not have them deleted, pinned or not.
func TestDeletesOnlyPieces(t *testing.T) {
	v := versions(2, 3000, 0.5)
	q, err := quota.New(t.Context(), blob.NewMemory(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	pinned, other := put(t, q, []byte{1}), put(t, q, []byte{2})
	q.Pin("job", []blob.CID{pinned})
	p := hasty(t, q)
	if _, err = p.bring(t.Context(), v[0], v[1], addrs(offering(t, v, 1, pinned, other))); err == nil {
		t.Fatal("applied")
	}
	wantNothing(t, q, pinned, other)
}

// A blob that the receiver's owner pins while a patch comes stays.
func TestKeepsPinned(t *testing.T) {
	v := versions(2, 3000, 0.5)
	q, err := quota.New(t.Context(), blob.NewMemory(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	evil := offering(t, v, 1, blob.Of([]byte{1}))
	put(t, evil.store, []byte{1})
	q.Pin("job", []blob.CID{blob.Of([]byte{1})})
	if _, err = hasty(t, q).bring(t.Context(), v[0], v[1], addrs(evil)); err == nil {
		t.Fatal("applied")
	}
	wantNothing(t, q, blob.Of([]byte{1}))
}

// A patch that does not come whole leaves nothing, also if the receiver gives up.
func TestLeavesNothing(t *testing.T) {
	v := versions(2, 3000, 0.5)
	evil := offering(t, v, 1, blob.Of([]byte{1}), blob.Of([]byte{2}))
	put(t, evil.store, []byte{1}) // the second never comes
	p := hasty(t, blob.NewMemory())
	if _, err := p.bring(t.Context(), v[0], v[1], addrs(evil)); !errors.Is(err, blob.ErrNotFound) {
		t.Fatal(err)
	}
	wantNothing(t, p.store)
	came := gated{Store: blob.NewMemory(), came: make(chan struct{}, 2)}
	p = open(t, came)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-came.came; <-came.came; cancel() }()
	if _, err := p.bring(ctx, v[0], v[1], addrs(evil)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	wantNothing(t, p.store)
	if len(p.known) != 0 {
		t.Error("the patch is known as coming")
	}
}

// Pieces that have more bytes than the head says do not come.
func TestPieceBytes(t *testing.T) {
	v := versions(2, 3000, 0.5)
	big := make([]byte, patch.MaxPieceBytes)
	_, _ = rand.Read(big)
	evil := offering(t, v, 1, blob.Of(big))
	put(t, evil.store, big)
	p := hasty(t, blob.NewMemory())
	_, err := p.bring(t.Context(), v[0], v[1], addrs(evil))
	if refused := (*RefusedError)(nil); !errors.As(err, &refused) {
		t.Error(err)
	}
	if _, got := p.host.Traffic(); got > 1<<17 {
		t.Errorf("%d bytes came of a piece of 1", got)
	}
	wantNothing(t, p.store)
}

// A peer that says nothing, one whose patch never comes, and one that makes for ever do not use up the search.
func TestStallsPass(t *testing.T) {
	v := versions(2, 3000, 0.5)
	origin := open(t, blob.NewMemory(), v...)
	end := make(chan struct{})
	for name, evil := range map[string]*node{
		"mute":    liar(t, blob.NewMemory(), func(*peer.Host, *question) []byte { <-end; return nil }),
		"missing": missing(t),
		"making": liar(t, blob.NewMemory(), func(*peer.Host, *question) []byte {
			return canon.MustMarshal(answer{Making: true})
		}),
		"stopping": offering(t, v, 1, blob.Of([]byte{1})),
	} {
		p := first(t, v[1], evil, origin)
		begin := time.Now()
		if _, err := p.bring(t.Context(), v[0], v[1], append(addrs(origin), addrs(evil)...)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("%s: %v", name, d)
		}
	}
	close(end)
}

// A Bring ends in its time, however slowly pieces come.
func TestBudget(t *testing.T) {
	v := versions(2, 3000, 0.5)
	var list []blob.CID
	for i := range 250 {
		list = append(list, blob.Of([]byte{byte(i)}))
	}
	evil := offering(t, v, 1, list...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for i := 0; i < 250 && rest(ctx, 40*time.Millisecond) == nil; i++ {
			_, _ = evil.store.Put(ctx, []byte{byte(i)})
		}
	}()
	p := hasty(t, blob.NewMemory())
	p.times.bring, p.times.stall = time.Second, time.Minute
	begin := time.Now()
	if _, err := p.Bring(t.Context(), v[0].Name, v[1].Name, 1<<16, addrs(evil), nil); err == nil {
		t.Fatal("it came")
	}
	if d := time.Since(begin); d > 6*time.Second {
		t.Errorf("it took %v", d)
	}
	wantNothing(t, p.store)
}

// counting counts the blobs that are put, and refuses every third if it fails.
type counting struct {
	blob.Store
	puts  *atomic.Int64
	fails bool
}

func (c counting) Put(ctx context.Context, data []byte) (blob.CID, error) {
	n := c.puts.Add(1)
	id, err := c.Store.Put(ctx, data)
	if c.fails && n%3 == 0 {
		return id, blob.ErrFull
	}
	return id, err
}

// A patch that cannot be made, or does not fit, is made once, and nothing of it is left.
func TestMadeOnce(t *testing.T) {
	v := versions(2, 1<<20, 1)
	small, err := quota.New(t.Context(), blob.NewMemory(), 2<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []counting{{blob.NewMemory(), new(atomic.Int64), true}, {small, new(atomic.Int64), false}} {
		origin := open(t, s, v...)
		body := canon.MustMarshal(question{From: v[0].Name.Root, To: v[1].Name.Root})
		origin.answer(t.Context(), "x", body)
		origin.working.Wait()
		once := s.puts.Load()
		for range 9 {
			a, err := parseAnswer("origin", origin.answer(t.Context(), "x", body))
			if origin.working.Wait(); err != nil || a.Known {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		if once == 0 || s.puts.Load() != once {
			t.Errorf("%d blobs were stored for ten questions, %d for the first", s.puts.Load(), once)
		}
		wantNothing(t, origin.store)
	}
}

// While a patch is made questions are answered, and another is not made.
func TestMakesInBackground(t *testing.T) {
	v := versions(3, 3000, 0.5)
	s := gated{Store: blob.NewMemory(), came: make(chan struct{})}
	origin := open(t, s, v...)
	if _, err := hasty(t, blob.NewMemory()).bring(t.Context(), v[0], v[1], addrs(origin)); err != nil {
		t.Fatal(err)
	}
	origin.mu.Lock()
	origin.making = true // for as long as the test lasts
	origin.mu.Unlock()
	ask := canon.MustMarshal(question{From: v[1].Name.Root, To: v[2].Name.Root})
	for range 20 {
		if a, err := parseAnswer("origin", origin.answer(t.Context(), "x", ask)); err != nil || !a.Making {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if _, err := hasty(t, blob.NewMemory()).bring(t.Context(), v[0], v[1], addrs(origin)); err != nil {
		t.Errorf("a patch that is ready: %v", err)
	}
}

// One account has two questions answered at a time.
func TestPlacesOfOne(t *testing.T) {
	var answering atomic.Int64
	end, begun := make(chan struct{}), make(chan struct{}, 8)
	busy := liar(t, blob.NewMemory(), func(*peer.Host, *question) []byte {
		answering.Add(1)
		begun <- struct{}{}
		<-end
		return canon.MustMarshal(answer{})
	})
	at, err := p2p.AddrInfoFromString(busy.host.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	ask := func(n *node) error {
		_, err := n.host.Ask(t.Context(), *at, Protocol, canon.MustMarshal(question{From: canon.Digest{1}}))
		return err
	}
	one, other := open(t, blob.NewMemory()), open(t, blob.NewMemory())
	answered := make(chan error, 3)
	for range 2 {
		go func() { answered <- ask(one) }()
		<-begun
	}
	if err := ask(one); err == nil {
		t.Error("a third")
	}
	go func() { answered <- ask(other) }()
	<-begun
	close(end)
	for range 3 {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	if n := answering.Load(); n != 3 {
		t.Errorf("%d questions were answered", n)
	}
}

// A peer that takes the place below the origin and gives nothing delays others, and loses it.
func TestSquat(t *testing.T) {
	v := versions(2, 3000, 0.5)
	origin := open(t, blob.NewMemory(), v...)
	squat := liar(t, blob.NewMemory(), func(*peer.Host, *question) []byte { return canon.MustMarshal(answer{}) })
	if !origin.make(t.Context(), v[0], v[1]) {
		t.Fatal("not made")
	}
	take := canon.MustMarshal(question{From: v[0].Name.Root, To: v[1].Name.Root, Serves: true})
	k := origin.known[way{v[0].Name.Root, v[1].Name.Root}]
	origin.answer(t.Context(), squat.host.ID(), take)
	for i := range believed {
		if !slices.Equal(k.children, []peer.ID{squat.host.ID()}) {
			t.Fatalf("%d: %v", i, k.children)
		}
		p := hasty(t, blob.NewMemory())
		if _, err := p.bring(t.Context(), v[0], v[1], append(addrs(origin), addrs(squat)...)); err != nil {
			t.Fatal(err)
		}
	}
	origin.answer(t.Context(), squat.host.ID(), take)
	if slices.Contains(k.children, squat.host.ID()) {
		t.Error("it has a place again")
	}
}

// A peer that was not sent to a child has no say about it, and one has no say alone.
func TestEvicts(t *testing.T) {
	k := &known{made: true}
	serves, failed := &question{Serves: true}, &question{Serves: true, Failed: true}
	k.place("honest", serves)
	for _, evil := range []peer.ID{"a", "b", "c"} {
		if list := k.place(evil, failed); list != nil {
			t.Errorf("%s is sent to %v again", evil, list)
		}
	}
	k.place("d", serves)
	k.place("d", failed)
	k.place("d", failed)
	if list := k.place("e", serves); !slices.Equal(list, []peer.ID{"honest"}) {
		t.Errorf("children %v", list)
	}
	k.place("e", failed)
	if slices.Contains(k.children, "honest") {
		t.Error("two that were sent to it had no patch")
	}
}

// A holder of many that others are not is found.
func TestFindsHolder(t *testing.T) {
	v := versions(2, 3000, 0.5)
	list := []*node{open(t, blob.NewMemory(), v...)}
	for range 15 {
		list = append(list, open(t, blob.NewMemory()))
	}
	if _, err := hasty(t, blob.NewMemory()).bring(t.Context(), v[0], v[1], addrs(list...)); err != nil {
		t.Error(err)
	}
}

// A store is asked once in a while whether it has a patch.
func TestStoredIsRemembered(t *testing.T) {
	v := versions(2, 3000, 0.5)
	var asked atomic.Int64
	origin := open(t, looked{blob.NewMemory(), &asked}, v...)
	origin.make(t.Context(), v[0], v[1])
	w := way{v[0].Name.Root, v[1].Name.Root}
	before := asked.Load()
	for range 20 {
		if !origin.has(t.Context(), w) {
			t.Fatal("not there")
		}
	}
	if n := asked.Load() - before; n > 1 {
		t.Errorf("the store was asked %d times", n)
	}
}

type looked struct {
	blob.Store
	asked *atomic.Int64
}

func (l looked) Has(ctx context.Context, c blob.CID) (bool, error) {
	l.asked.Add(1)
	return l.Store.Has(ctx, c)
}
