package weights

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
)

// node is a host with its exchange, and the versions that it holds.
type node struct {
	*Exchange
	host  *peer.Host
	store blob.Store
	held  []patch.Version
}

func (n *node) Versions() []patch.Version { return n.held }

// gated is a store that says which blobs come, and gives no more than some away before it is let.
type gated struct {
	blob.Store
	came  chan struct{}
	given chan struct{} // has as much room as blobs that are given away; nil: all are
	let   chan struct{}
}

func (g gated) Put(ctx context.Context, data []byte) (blob.CID, error) {
	c, err := g.Store.Put(ctx, data)
	select {
	case g.came <- struct{}{}:
	default:
	}
	return c, err
}

func (g gated) Open(ctx context.Context, c blob.CID) (blob.Reader, error) {
	r, err := g.Store.Open(ctx, c)
	if err == nil && g.given != nil {
		select {
		case g.given <- struct{}{}:
		case <-g.let:
		}
	}
	return r, err
}

// listen is a host on the loopback that serves a store.
func listen(t *testing.T, store blob.Store) *peer.Host {
	t.Helper()
	key, err := peer.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	h, err := peer.New(peer.Config{Key: key, Store: store, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func open(t *testing.T, store blob.Store, held ...patch.Version) *node {
	t.Helper()
	h := listen(t, store)
	n := &node{New(h, store, h.FetchWithin), h, store, held}
	stop := n.Serve(n)
	t.Cleanup(func() { stop(); n.Close() })
	return n
}

func root(t *tensor.Tensor) canon.Digest { return t.Root() }

// versions are some that follow each other, of a number of elements.
func versions(n, elements int, share float64) (list []patch.Version) {
	r := rand.New(rand.NewPCG(1, 1))
	x := tensor.New(tensor.Make(tensor.Float32, elements))
	for i := range x.F32() {
		x.F32()[i] = float32(r.NormFloat64())
	}
	for round := range n {
		x = x.Clone()
		for i := range x.F32() {
			if r.Float64() < share {
				x.F32()[i] += float32(r.NormFloat64())
			}
		}
		name := patch.Name{Round: uint32(round), Root: root(x)}
		list = append(list, patch.Version{Name: name, Tensors: []*tensor.Tensor{x}})
	}
	return list
}

// bring has a node get a version from one that it holds.
func (n *node) bring(ctx context.Context, from, to patch.Version, holders []string) (int64, error) {
	return n.Bring(ctx, from.Name, to.Name, 16<<20, holders, func(h *patch.Head, get func(int) ([]byte, error)) error {
		list, err := h.Apply(from, get, nil)
		if err == nil && root(list[0]) != to.Name.Root {
			err = errors.New("another root")
		}
		return err
	})
}

func addrs(nodes ...*node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.host.Addrs()...)
	}
	return list
}

// Eight peers get a version of several pieces from one, which sends about one patch.
func TestTree(t *testing.T) {
	v := versions(2, 1<<20, 1)
	origin := open(t, blob.NewMemory(), v...)
	var peers []*node
	for range 8 {
		peers = append(peers, open(t, blob.NewMemory()))
	}
	all := addrs(append(peers, origin)...)
	errs := make([]error, len(peers))
	got := make([]int64, len(peers))
	var working sync.WaitGroup
	for i, p := range peers {
		working.Go(func() { got[i], errs[i] = p.bring(t.Context(), v[0], v[1], all) })
	}
	working.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	sent, _ := origin.host.Traffic()
	if times := float64(sent) / float64(got[0]); times > 1.01 {
		t.Errorf("the origin sent %.2f patches", times)
	}
	if got[0] < 3<<20 {
		t.Errorf("%d bytes", got[0])
	}
}

// A peer that dies while it passes a patch on is replaced: those below it get the rest from elsewhere.
func TestTreeHeals(t *testing.T) {
	v := versions(2, 1<<20, 1)
	gate := gated{blob.NewMemory(), make(chan struct{}), make(chan struct{}, 2), make(chan struct{})}
	origin := open(t, gate, v...)
	here := gated{Store: blob.NewMemory(), came: make(chan struct{}, 8)}
	first := open(t, here)
	dying, die := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := first.bring(dying, v[0], v[1], addrs(origin))
		ended <- err
	}()
	for range cap(gate.given) {
		<-here.came
	}
	passed := make(chan struct{}, 8)
	var peers []*node
	for range 3 {
		peers = append(peers, open(t, gated{Store: blob.NewMemory(), came: passed}))
	}
	all := slices.Concat(addrs(origin), addrs(peers...), addrs(first))
	errs := make([]error, len(peers))
	var working sync.WaitGroup
	for i, p := range peers {
		working.Go(func() {
			_, errs[i] = p.bring(t.Context(), v[0], v[1], all)
		})
	}
	<-passed // from the first: the origin gives nothing away
	die()
	_ = first.host.Close()
	close(gate.let)
	if err := <-ended; err == nil {
		t.Fatal("it did not die in time")
	}
	working.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Patches lead to later versions, in fewer bytes than the caller takes.
func TestOnlyForward(t *testing.T) {
	v := versions(3, 3000, 0.01)
	origin, late := open(t, blob.NewMemory(), v...), open(t, blob.NewMemory())
	size, err := late.bring(t.Context(), v[0], v[2], addrs(origin))
	if err != nil {
		t.Fatal(err)
	}
	_, err = open(t, blob.NewMemory()).Bring(t.Context(), v[0].Name, v[2].Name, size-1, addrs(origin), nil)
	if !errors.Is(err, ErrLarger) {
		t.Errorf("more bytes than the whole: %v", err)
	}
	for _, to := range v[:2] {
		if _, err := late.bring(t.Context(), v[1], to, addrs(origin)); !errors.Is(err, ErrNone) {
			t.Errorf("back to %d: %v", to.Name.Round, err)
		}
	}
	q := canon.MustMarshal(question{From: v[1].Name.Root, To: v[0].Name.Root})
	if a, err := parseAnswer("origin", origin.answer(t.Context(), "x", q)); err != nil || a.Known || a.Making {
		t.Errorf("back: %+v, %v", a, err)
	}
}

// A patch whose bytes the store has deleted is made again.
func TestMadeAgain(t *testing.T) {
	v := versions(2, 3000, 0.5)
	origin := open(t, blob.NewMemory(), v...)
	for _, drop := range []int{-1, 0, 1} { // none, and each of its two blobs
		origin.times.stored = 0
		list, err := origin.store.List(t.Context())
		if err != nil || drop >= len(list) {
			t.Fatal(list, err)
		}
		if drop >= 0 {
			if err := origin.store.Delete(t.Context(), list[drop]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := open(t, blob.NewMemory()).bring(t.Context(), v[0], v[1], addrs(origin)); err != nil {
			t.Fatal(err)
		}
	}
}

// A patch that leads elsewhere is refused, named and not passed on. The sender is not what its store says.
func TestRefuses(t *testing.T) {
	v := versions(3, 3000, 0.5)
	wrong := patch.Version{Name: v[1].Name, Tensors: v[2].Tensors}
	liar := open(t, blob.NewMemory(), v[0], wrong)
	p := open(t, blob.NewMemory())
	_, err := p.bring(t.Context(), v[0], v[1], addrs(liar))
	refused := (*RefusedError)(nil)
	if !errors.As(err, &refused) || refused.Peer != liar.host.ID() {
		t.Fatal(err)
	}
	if len(p.known) != 0 {
		t.Error("it would pass the patch on")
	}
	if list, _ := p.store.List(t.Context()); len(list) != 0 {
		t.Errorf("it keeps %v", list)
	}
}

// FuzzWire reads questions and answers of strangers.
func FuzzWire(f *testing.F) {
	id := []byte("12345678")
	f.Add(canon.MustMarshal(question{From: canon.Digest{1}, Failed: true}))
	f.Add(canon.MustMarshal(answer{Known: true, Bytes: 1, Ask: [][]byte{id}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := parseQuestion(b); err == nil && !slices.Equal(canon.MustMarshal(q), b) {
			t.Fatalf("%+v", q)
		}
		if a, err := parseAnswer("self", b); err == nil && !slices.Equal(canon.MustMarshal(a), b) {
			t.Fatalf("%+v", a)
		}
	})
}
