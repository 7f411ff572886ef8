package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/referee/answered/answeredtest"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/internal/nowork"
	"github.com/starling-network/starling/node/accused"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/hosting"
)

const (
	funds = 50_000_000
	bond  = 5_000_000
	least = 1_000_000
)

func key(name string) *wallet.Key { return wallet.KeyFromSeed(canon.Sum("test", []byte(name))) }

// party is an account of the network with the model.
func party(t *testing.T, c *client.Client, h *answeredtest.Hosted) *accused.Party {
	t.Helper()
	m, err := checked.New(&pretrained.Model{Config: h.Config, Tensors: h.Weights, Tokenizer: tokenizer.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	return &accused.Party{Account: c.Address(), Model: m, Threads: 1, Network: c.Hosting}
}

// On a real chain a provider that signed a wrong answer and defends it loses its bond, the books are balanced all the
// time, and a right answer is not accused.
func TestWrongAnswerIsConvicted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config := chain.Config{Home: t.TempDir(), ChainID: "test", BlockTime: 50 * time.Millisecond, Log: t.Output(),
		Referee: nowork.Open}
	names := []string{"provider", "holder"}
	for _, name := range names {
		config.Accounts = append(config.Accounts, chain.Funded{Address: key(name).Address(), Amount: funds})
	}
	v, err := chain.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Stop() })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	clients := map[string]*client.Client{}
	for _, name := range names {
		clients[name] = client.New(v.Client(), key(name))
		t.Cleanup(clients[name].Close)
	}
	h := answeredtest.Host(t, 1)
	provider, holder := party(t, clients["provider"], h), party(t, clients["holder"], h)
	if holder.Model.Weights != h.Root {
		t.Fatal("two roots of one model")
	}
	model, err := clients["provider"].Hosting.Register(ctx, hosting.Model{Name: "m", Files: canon.Sum("files"),
		Weights: h.Root})
	must(err)
	must(clients["provider"].Hosting.Host(ctx, hosting.Place{Model: model, URL: "http://127.0.0.1:1/", Bond: bond}))

	code, err := holder.Model.Program(64)
	must(err)
	r := h.Answer(t, clients["provider"].Address())
	r.Chain, r.Model, r.Program = "test", model, code.Digest()
	sign := func() answer.Signed {
		s, err := answer.Sign(r, key("provider").PublicKey(), key("provider").Sign)
		must(err)
		return s
	}
	if _, err := holder.Accuse(ctx, sign()); !errors.Is(err, accused.ErrRight) {
		t.Errorf("a right answer: %v", err)
	}
	r.Answer = slices.Clone(r.Answer)
	r.Answer[7] ^= 1
	id, err := holder.Accuse(ctx, sign())
	must(err)
	block, err := client.Heights(ctx, clients["holder"])
	must(err)
	next := func(ctx context.Context) (int64, error) {
		balanced(ctx, t, clients["holder"])
		return block(ctx)
	}
	stop, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	defended, err := client.Heights(ctx, clients["provider"])
	must(err)
	go func() {
		done <- provider.Defend(stop, defended, func(id uint64, err error) { t.Errorf("accusation %d: %v", id, err) })
	}()
	if again, err := holder.Accuse(ctx, sign()); err != nil || again != id {
		t.Errorf("the same receipt is accusation %d, and then %d, %v", id, again, err)
	}
	holder.Network = &once{Network: holder.Network}
	failures := 0
	over, err := holder.Play(ctx, []uint64{id}, next, func(uint64, error) { failures++ })
	must(err)
	end()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if failures != 1 {
		t.Errorf("%d moves failed", failures)
	}
	if len(over) != 1 || !over[0].Convicted() || over[0].Game.Ply() != 3 {
		t.Errorf("%+v", over)
	}
	places, err := clients["holder"].Hosting.Places(ctx, model)
	must(err)
	if len(places) != 1 || !places[0].Lied {
		t.Errorf("%+v", places)
	}
	balanced(ctx, t, clients["holder"])
	if all, err := clients["holder"].Hosting.Accusations(ctx, false); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	has, err := clients["holder"].Coins.Balance(ctx, clients["holder"].Address())
	must(err)
	if gain := int64(has) - funds; gain <= bond/2-least || gain > bond/2 {
		t.Errorf("the holder gained %d uzen of %d, less fees", gain, bond/2)
	}
}

// once is a network of which the first query fails.
type once struct {
	accused.Network
	failed bool
}

func (o *once) Accusation(ctx context.Context, id uint64) (answer.Accusation, error) {
	if !o.failed {
		o.failed = true
		return answer.Accusation{}, errors.New("connection reset")
	}
	return o.Network.Accusation(ctx, id)
}

// balanced checks that every module has the coins that it accounts for.
func balanced(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	head, err := c.Ledger.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all, err := books.Count(ctx, c.At(head.Height))
	if err != nil {
		t.Error(err)
	}
	for _, b := range all {
		if !b.Balanced() {
			t.Errorf("the books are wrong: %+v", b)
		}
	}
}
