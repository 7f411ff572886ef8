package linked

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/replicated"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/dialogue"
	"github.com/starling-network/starling/node/triple"
)

var size = picture.Size{Rows: 8, Columns: 8, Channels: 1}

// network is a drawn perceptron in a folder.
func network(t testing.TB) (vision.Network, map[string]*tensor.Tensor, string) {
	t.Helper()
	n, err := vision.Parse(vision.MLP, map[string]any{"hidden_sizes": []any{24, 12}}, size, []string{"0", "1", "2"})
	if err != nil {
		t.Fatal(err)
	}
	weights, dir := architecture.Init(n.Tensors(), 5), t.TempDir()
	for i := range weights["fc2.bias"].F32() {
		weights["fc2.bias"].F32()[i] = float32(i) / 7
	}
	var file bytes.Buffer
	if err := errors.Join(safetensors.EncodeAs(&file, slices.Sorted(maps.Keys(weights)), weights, nil, nil),
		os.WriteFile(filepath.Join(dir, "model.safetensors"), file.Bytes(), 0o600),
		os.WriteFile(filepath.Join(dir, "config.json"), n.JSON(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return n, weights, dir
}

func host(t testing.TB, standing func(peer.ID) admission.Standing) *peer.Host {
	t.Helper()
	key, err := peer.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	h, err := peer.New(peer.Config{Key: key, Store: blob.NewMemory(), Standing: standing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// parties serve a model in a folder to one client.
func parties(t testing.TB, dir string, client peer.ID) (addrs [replicated.Parties]string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "parties")
	if _, err := triple.Divide(os.DirFS(dir), out); err != nil {
		t.Fatal(err)
	}
	var hosts [replicated.Parties]*peer.Host
	for i := range hosts {
		hosts[i] = host(t, nil)
		addrs[i] = hosts[i].Addrs()[0]
	}
	for i, h := range hosts {
		s, err := triple.Open(filepath.Join(out, triple.Name(i)))
		if err == nil {
			err = Serve(t.Context(), h, s, addrs, func(id peer.ID) bool { return id == client })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return addrs
}

// The scores are those of the model, within the bound that the manifest states.
func TestScores(t *testing.T) {
	n, weights, dir := network(t)
	client := host(t, nil)
	addrs := parties(t, dir, client.ID())
	c, err := Connect(t.Context(), client, addrs)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := model.Scores(n, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i := range 12 {
		image := picture.Picture{Size: size, Values: make([]byte, size.Values())}
		tokens := tensor.New(tensor.Make(tensor.Int32, 1, size.Values()))
		for k := range image.Values {
			image.Values[k] = byte(i*37 + k*k*11)
			tokens.I32()[k] = int32(image.Values[k])
		}
		in := map[string]*tensor.Tensor{"tokens": tokens}
		for name, w := range weights {
			in[train.Param+name] = w
		}
		out, err := x.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		scores, err := c.Scores(t.Context(), image)
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range only(out).F32() {
			worst = max(worst, math.Abs(scores[k]-float64(want)))
		}
	}
	if m := c.Manifest; worst == 0 || worst > m.Bound || m.Bound > 0.5 || m.Risk <= 0 || m.Risk > 1e-6 {
		t.Errorf("scores differ by %v, the bound is %v, the risk %v", worst, m.Bound, m.Risk)
	}
	t.Logf("scores differ by %v, the bound is %v, the risk %v", worst, c.Manifest.Bound, c.Manifest.Risk)
	if _, err := c.Scores(t.Context(), picture.Picture{}); !errors.Is(err, ErrSize) {
		t.Errorf("no image: %v", err)
	}
}

func only(out map[string]*tensor.Tensor) *tensor.Tensor {
	for _, t := range out {
		return t
	}
	return nil
}

// A peer gets no more than is its own: a stranger no answer, a party before no shares, a client no messages.
func TestQuestionsThatAreRefused(t *testing.T) {
	_, _, dir := network(t)
	client, stranger := host(t, nil), host(t, nil)
	addrs := parties(t, dir, client.ID())
	if _, err := Connect(t.Context(), stranger, addrs); !errors.Is(err, ErrParty) {
		t.Errorf("a stranger: %v", err)
	}
	addrs[1], addrs[2] = addrs[2], addrs[1]
	if _, err := Connect(t.Context(), client, addrs); err == nil || !strings.Contains(err.Error(), "party 3") {
		t.Errorf("in another order: %v", err)
	}
	addrs[1], addrs[2] = addrs[2], addrs[1]
	other := parties(t, dir, client.ID())
	if _, err := Connect(t.Context(), client, [replicated.Parties]string{addrs[0], addrs[1], other[2]}); err == nil ||
		!strings.Contains(err.Error(), "another division") {
		t.Errorf("shares of two divisions: %v", err)
	}
	c, err := Connect(t.Context(), client, addrs)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, q := range []question{{Kind: kindMessage}, {Kind: 9}, {Kind: kindImage, Shares: [2][]byte{{1}, {2}}}} {
		if _, err := ask(t.Context(), c.parties[0], q); !errors.Is(err, ErrParty) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// idle is a party that computes nothing.
func idle() *Party {
	return &Party{changed: make(chan struct{}), sessions: map[session]*computation{}}
}

// A computation that is not over is kept, however many others begin and end after it.
func TestOthersDoNotEndAComputation(t *testing.T) {
	p := idle()
	first, err := p.begin(session{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * kept {
		c, err := p.begin(session{1, byte(i)})
		if err != nil {
			t.Fatal(err)
		}
		c.messages = [][]byte{{1}}
		p.end(c)
	}
	if p.sessions[session{}] != first || len(p.sessions) > kept+atOnce || len(p.order) != len(p.sessions) {
		t.Errorf("%d sessions of %d, or the first is gone", len(p.sessions), len(p.order))
	}
	last := session{1, 2*kept - 1}
	for i := range atOnce - 1 {
		if _, err := p.begin(session{2, byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range refused + 9 {
		if _, err := p.begin(session{3, byte(i), byte(i >> 8)}); err == nil {
			t.Fatal("too many are computed")
		}
	}
	if len(p.sessions) > kept+refused+atOnce || len(p.order) != len(p.sessions) {
		t.Errorf("%d sessions are kept", len(p.sessions))
	}
	if b, err := p.message(last, 0); err != nil || len(b) != 1 {
		t.Errorf("the message of a computation that is over: %v", err)
	}
}

// The party before learns at once that an image is refused.
func TestRefusedImagesAreNotWaitedFor(t *testing.T) {
	p := idle()
	for i := range atOnce + 1 {
		_, _ = p.begin(session{byte(i)})
	}
	if _, err := p.message(session{atOnce}, 0); err == nil || !strings.Contains(err.Error(), "over") {
		t.Errorf("%v", err)
	}
}

// Of more images than a party computes at once, each is answered or refused by all without a wait.
func TestMoreThanAtOnce(t *testing.T) {
	_, _, dir := network(t)
	client := host(t, nil)
	addrs := parties(t, dir, client.ID())
	var all sync.WaitGroup
	for range atOnce + 1 {
		c, err := Connect(t.Context(), client, addrs)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all.Go(func() {
			for range 5 {
				_, err := c.Scores(t.Context(), picture.Picture{Size: size, Values: make([]byte, size.Values())})
				if err != nil && (!strings.Contains(err.Error(), "ask again") || strings.Contains(err.Error(), "no such")) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// Two clients never take part in one computation.
func TestSessionsAreOfOneClient(t *testing.T) {
	if s := (session{1}); s.by("a") == s.by("b") || s.by("a") == (session{2}).by("a") {
		t.Error("sessions of two clients are one")
	}
}

// A party that says another bound than the first one, or does not answer at all, is an error and no end of all work.
func TestPartiesThatDiffer(t *testing.T) {
	_, _, dir := network(t)
	client := host(t, nil)
	addrs := parties(t, dir, client.ID())
	c, err := Connect(t.Context(), client, addrs)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	waits = 200 * time.Millisecond
	t.Cleanup(func() { waits = 3 * patient })
	for name, answers := range map[string]func() []byte{
		"has shares of another division": func() []byte {
			m := c.Manifest
			m.Party, m.Bound = 2, m.Bound/2
			b, err := json.Marshal(m)
			if err != nil {
				t.Error(err)
			}
			return canon.MustMarshal(answer{Bytes: b})
		},
		"deadline exceeded": func() []byte {
			<-t.Context().Done()
			return nil
		},
	} {
		h := host(t, nil)
		h.Converse(protocol, about, func(peer.ID) dialogue.Answerer { return liar(answers) })
		_, err := Connect(t.Context(), client, [replicated.Parties]string{addrs[0], addrs[1], h.Addrs()[0]})
		if !errors.Is(err, ErrParty) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// liar is a party that lies.
type liar func() []byte

func (a liar) Answer([]byte) []byte { return a() }
func (a liar) End()                 {}

// A party that ends does not wait for the message of a computation.
func TestEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := idle()
	p.ends = ctx.Done()
	cancel()
	if _, err := p.message(session{}, 0); err == nil || !strings.Contains(err.Error(), "ends") {
		t.Errorf("%v", err)
	}
}

// Parties are three peers, and clients have peer IDs.
func TestPeers(t *testing.T) {
	_, _, dir := network(t)
	addrs := parties(t, dir, "")
	key, err := peer.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		parties [replicated.Parties]string
		clients []string
	}{
		"parties 1 and 3 are the peer": {[...]string{addrs[0], addrs[1], addrs[0]}, nil},
		"no peer ID":                   {addrs, []string{"somebody"}},
		"failed to parse":              {[...]string{addrs[0], "nowhere", addrs[1]}, nil},
		"and this is":                  {addrs, nil},
	} {
		err := Run(t.Context(), key, nil, &triple.Share{}, c.parties, c.clients, nil)
		if !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzQuestion answers bytes of a client and of the party before.
func FuzzQuestion(f *testing.F) {
	_, _, dir := network(f)
	out := filepath.Join(f.TempDir(), "parties")
	if _, err := triple.Divide(os.DirFS(dir), out); err != nil {
		f.Fatal(err)
	}
	s, err := triple.Open(filepath.Join(out, triple.Name(0)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{0x80}, true)
	f.Add(canon.MustMarshal(question{Kind: kindModel}), true)
	f.Add(canon.MustMarshal(question{Kind: kindImage, Shares: [2][]byte{{1}, {2}}}), true)
	f.Fuzz(func(t *testing.T, b []byte, client bool) {
		p := &Party{share: s, before: "before", clients: func(peer.ID) bool { return client },
			changed: make(chan struct{}), sessions: map[session]*computation{}, running: atOnce}
		var a answer
		if err := canon.Unmarshal((&conversation{p, "client"}).Answer(b), &a); err != nil {
			t.Error(err)
		}
		if !client && a.Refused == "" {
			t.Errorf("%x is answered", b)
		}
	})
}
