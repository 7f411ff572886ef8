package client_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/identity"
	chaindelegation "github.com/starling-network/starling/chain/x/delegation"
	chainregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/protocol/delegation"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
)

// hurry begins the chain again, with epochs and waits of a few blocks.
func (n *network) hurry(names ...string) {
	n.t.Helper()
	n.validator.Stop()
	seed := canon.Sum("seed")
	doc, err := chain.Genesis("test", time.Now(), []identity.Keys{identity.NewKeys(seed)}, n.config.Accounts)
	n.must(err)
	p := registry.DefaultParams()
	p.BeatBlocks, p.EpochBlocks, p.UnstakeBlocks = 5, 10, 10
	state := map[string]json.RawMessage{}
	n.must(json.Unmarshal(doc.AppState, &state))
	state[chainregistry.Name], err = json.Marshal(map[string]any{"params": []any{
		map[string]any{"key": "item", "value": p}}})
	n.must(err)
	doc.AppState, err = json.Marshal(state)
	n.must(err)
	n.config.Home, n.config.Seed, n.config.Genesis = n.t.TempDir(), seed[:], doc
	n.open(names...)
}

// Two workers take delegated stake. One is paid, and shares it with its delegator; the other lies, and its delegator
// loses the same part as it. Both delegators get out what is theirs, and the books are balanced all the time.
func TestStakeIsDelegated(t *testing.T) {
	t.Parallel()
	names := []string{"consumer", "w0", "w1", "v0", "a", "b"}
	n := start(t, names...)
	n.config.Referee, n.liar = ruling(false).open, key("w1").Address()
	n.hurry(names...)
	a, b, w0, w1 := n.clients["a"], n.clients["b"], n.clients["w0"], n.clients["w1"]
	_, err := w0.Delegation.Terms(n.ctx, 100_000, false)
	n.refused(err, delegation.ErrParty, chaindelegation.Name, 9)
	n.enlist("w0", crew.Worker, 500)
	n.enlist("w1", crew.Worker, 500)
	n.enlist("v0", crew.Verifier, 500)
	_, err = a.Delegation.Delegate(n.ctx, w0.Address(), delegation.Least)
	n.refused(err, delegation.ErrNoPool, chaindelegation.Name, 2)
	for _, w := range []string{"w0", "w1"} {
		_, err = n.clients[w].Delegation.Terms(n.ctx, 100_000, false)
		n.must(err)
	}
	_, err = w0.Delegation.Delegate(n.ctx, w0.Address(), delegation.Least)
	n.refused(err, delegation.ErrParty, chaindelegation.Name, 9)
	_, err = a.Delegation.Delegate(n.ctx, w0.Address(), delegation.Least+1) // half of the own stake is the limit
	n.refused(err, delegation.ErrRoom, chaindelegation.Name, 4)
	_, err = a.Delegation.Delegate(n.ctx, w0.Address(), delegation.Least)
	n.must(err)
	at, err := b.Delegation.Delegate(n.ctx, w1.Address(), delegation.Least)
	n.must(err)
	n.balanced(a)
	for n.height(a) < at+2 {
	}
	pool, err := a.Delegation.Pool(n.ctx, w0.Address())
	n.must(err)
	if pool.Staying != delegation.Least || pool.Backing != delegation.Least || pool.Room != 0 || pool.Own != stake ||
		pool.Delegators != 1 {
		t.Fatalf("%+v", pool)
	}
	lots, err := a.Market.Lots(n.ctx)
	n.must(err)
	for _, l := range lots {
		if (l.Backing == delegation.Least) != (l.Role == crew.Worker) || l.Stake != stake {
			t.Errorf("%+v", l)
		}
	}
	n.must(n.clients["consumer"].Market.Order(n.ctx, order("job"), nil))
	n.finish("v0", "w0", "w1")
	n.balanced(a)
	n.shared("a", "w0")
	n.slashed("b", "w1")
	n.leaves("a", "w0")
	n.leaves("b", "w1")
	n.balanced(a)
}

// shared compares what a worker and its delegator got for the work, by the receipts and by their accounts.
func (n *network) shared(delegator, worker string) {
	n.t.Helper()
	w, d := n.clients[worker], n.clients[delegator]
	all, err := d.Reward.Earnings(n.ctx, w.Address())
	n.must(err)
	var paid, gave uint64
	for _, r := range all {
		switch {
		case r.Kind == reward.Shared: // the delegator has one third of the stake, and pays a tenth of its part
			gave += r.Amount
			if third := r.Pot / 3; r.Amount != third-(third+9)/10 || r.Part != delegation.Least || r.Whole != stake+r.Part {
				n.t.Errorf("%+v", r)
			}
		case !r.Kind.Lost():
			paid += r.Amount
		}
	}
	n.balance(worker, funds-stake+paid-gave)
	had, err := d.Coins.Balance(n.ctx, d.Address())
	n.must(err)
	n.must(d.Delegation.Claim(n.ctx, w.Address()))
	all, err = d.Reward.Earnings(n.ctx, d.Address())
	n.must(err)
	i := slices.IndexFunc(all, func(r reward.Receipt) bool { return r.Kind == reward.Delegated })
	if gave == 0 || i < 0 || all[i].Amount > gave || all[i].Amount+10 < gave { // each payment is rounded down
		n.t.Fatalf("%d of %d shared: %+v", gave, paid, all)
	}
	n.balance(delegator, had+all[i].Amount)
}

// slashed compares what a convicted worker and its delegator lost.
func (n *network) slashed(delegator, worker string) {
	n.t.Helper()
	d := n.clients[delegator]
	p, err := d.Registry.Participant(n.ctx, key(worker).Address())
	n.must(err)
	parts, err := d.Delegation.Delegations(n.ctx, d.Address())
	n.must(err)
	pool, err := d.Delegation.Pool(n.ctx, p.ID)
	n.must(err)
	if len(parts) != 1 || p.Slashed == 0 || pool.Backing != pool.Staying || pool.Room != 0 {
		n.t.Fatalf("%+v, %+v of %+v", parts, pool, p)
	}
	want := delegation.Least * p.Stake / stake // rounded up with each of several slashes
	if got := parts[0].Stays; got > want || got+10 < want || got+pool.Slashed != delegation.Least {
		n.t.Errorf("%d are left of the delegated stake, want %d: %+v", got, want, pool)
	}
	_, err = d.Delegation.Delegate(n.ctx, p.ID, delegation.Least)
	n.refused(err, delegation.ErrParty, chaindelegation.Name, 9)
}

// leaves takes a delegation back, which is paid out after its wait.
func (n *network) leaves(delegator, worker string) {
	n.t.Helper()
	d := n.clients[delegator]
	had, err := d.Coins.Balance(n.ctx, d.Address())
	n.must(err)
	pool, err := d.Delegation.Pool(n.ctx, key(worker).Address())
	n.must(err)
	back, at, err := d.Delegation.Undelegate(n.ctx, pool.ID, 0)
	n.must(err)
	n.balance(delegator, had)
	for n.height(d) < at+2 {
	}
	n.balance(delegator, had+pool.Tokens)
	if all, err := d.Delegation.Delegations(n.ctx, d.Address()); err != nil || len(all) > 0 || back > 0 {
		n.t.Errorf("%+v, %v, %d back", all, err, back)
	}
}
