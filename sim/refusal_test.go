package sim

import (
	"bytes"
	"slices"
	"testing"
	"time"

	dbm "github.com/cosmos/cosmos-db"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/internal/nowork"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/sim/ledger"
)

// bare is a chain on which two accounts have coins, and one of them waits with an order.
func bare(t *testing.T) *ledger.Ledger {
	keys := []identity.Keys{identity.NewKeys(canon.Sum("bare"))}
	accounts := []chain.Funded{{Address: keyOf("ann").Address(), Amount: 4000},
		{Address: keyOf("bob").Address(), Amount: 2000}}
	doc := must(chain.Genesis("bare", time.Unix(1_000_000_000, 0), keys, accounts))(t)
	l := must(ledger.New(doc, keys, nowork.Open, dbm.NewMemDB()))(t)
	for n := range 3 {
		if n == 1 {
			must(l.Check(sign(t, l, keyOf("ann"), ordered("taken", 1000, 0))))(t)
		}
		must(l.Block(t.Context(), time.Duration(n)*time.Second))(t)
	}
	return l
}

// ordered is an order of ann.
func ordered(job string, budget uint64, deadline int64) *marketpb.MsgOrder {
	return &marketpb.MsgOrder{
		Sender: keyOf("ann").Address(), Budget: budget, PriceCap: 10, WorkersMin: 1, WorkersTarget: 1, WorkersMax: 1,
		Deadline: deadline,
		Terms: runpb.FromTerms(terms.Terms{
			Job: job, Spec: canon.Sum("spec"), SpecCID: "spec",
			Genesis: terms.Checkpoint{Root: canon.Sum("genesis"), CID: "genesis"}, Rounds: 1, Units: 1, Segments: 1,
			UnitFlops: 1, Deadlines: terms.Deadlines{Train: 1, Audit: 1, Attest: 1, Challenge: 1}, Window: 1,
		}),
	}
}

// Every way in which a transaction can be wrong has a stable code, a sentence and a fix, whether a validator refuses it
// or a proposer puts it in a block all the same; and nothing changes but the sequence of its sender.
func TestWhatIsRefused(t *testing.T) {
	ann, bob := keyOf("ann").Address(), keyOf("bob").Address()
	pay := func(amount uint64) sdk.Msg {
		return &banktypes.MsgSend{FromAddress: ann, ToAddress: bob, Amount: adapter.Coins(amount)}
	}
	by := func(name string, m sdk.Msg) func(*testing.T, *ledger.Ledger) [][]byte {
		return func(t *testing.T, l *ledger.Ledger) [][]byte { return [][]byte{sign(t, l, keyOf(name), m)} }
	}
	signed := func(t *testing.T, l *ledger.Ledger, key *wallet.Key, a transaction.Account, until uint64,
		m sdk.Msg) [][]byte {
		number, sequence, err := client.New(l.Connection, keyOf("ann")).Sequence(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a.Number, a.Sequence = a.Number+number, a.Sequence+sequence
		return [][]byte{must(transaction.Sign(t.Context(), key, a, until, m))(t)}
	}
	own := transaction.Account{ChainID: "bare"}
	for _, c := range []struct {
		name  string
		txs   func(*testing.T, *ledger.Ledger) [][]byte // the last of which is wrong
		space string
		code  uint32
	}{
		{"sends more than there is", by("ann", pay(5000)), sdkerrors.RootCodespace, 5},
		{"orders for more than there is", by("ann", ordered("job", 5000, 0)), "market", 10},
		{"stakes more than there is", by("ann",
			&registrypb.MsgRegister{Sender: ann, PeerId: "peer", Roles: []registrypb.Role{registrypb.Role_ROLE_WORKER},
				Stake: 2_000_000}), "registry", 6},
		{"pays revenue for nothing", by("ann", &rewardpb.MsgPayRevenue{Sender: ann, Job: "taken", Amount: 10}), "reward", 4},
		{"orders for less than waiting costs", by("ann", ordered("job", coin.Zen().WaitingFee(0)-1, 0)), "market", 2},
		{"is expired", by("ann", ordered("job", 1000, 2)), "market", 11},
		{"is ordered already", by("ann", ordered("taken", 1000, 0)), "market", 5},
		{"spends twice", func(t *testing.T, l *ledger.Ledger) [][]byte {
			return slices.Concat(signed(t, l, keyOf("ann"), own, 0, pay(2900)),
				signed(t, l, keyOf("ann"), transaction.Account{ChainID: "bare", Sequence: 1}, 0, pay(2900)))
		}, sdkerrors.RootCodespace, 5},
		{"is another with the same sequence", func(t *testing.T, l *ledger.Ledger) [][]byte {
			return slices.Concat(signed(t, l, keyOf("ann"), own, 0, pay(1)), signed(t, l, keyOf("ann"), own, 0, pay(2)))
		}, sdkerrors.RootCodespace, 32},
		{"is replayed", func(t *testing.T, l *ledger.Ledger) [][]byte {
			tx := by("ann", pay(1))(t, l)
			return slices.Concat(tx, tx)
		}, sdkerrors.RootCodespace, 32},
		{"is of another chain", func(t *testing.T, l *ledger.Ledger) [][]byte {
			return signed(t, l, keyOf("ann"), transaction.Account{ChainID: "other"}, 0, pay(1))
		}, sdkerrors.RootCodespace, 4},
		{"is too late", func(t *testing.T, l *ledger.Ledger) [][]byte { return signed(t, l, keyOf("ann"), own, 1, pay(1)) },
			sdkerrors.RootCodespace, 30},
		{"is signed by another", func(t *testing.T, l *ledger.Ledger) [][]byte {
			return signed(t, l, keyOf("bob"), own, 0,
				pay(1))
		}, sdkerrors.RootCodespace, 8},
		{"is no transaction", func(*testing.T, *ledger.Ledger) [][]byte { return [][]byte{[]byte("nonsense")} },
			sdkerrors.RootCodespace, 2},
		{"has bytes after its end", func(t *testing.T, l *ledger.Ledger) [][]byte {
			return [][]byte{append(by("ann", pay(1))(t, l)[0], 0)}
		}, sdkerrors.RootCodespace, 2},
		{"has half a digest", by("ann", &registrypb.MsgAnswerMeasure{Sender: ann, Root: []byte("short")}), "registry", 14},
		{"cancels the order of another account", by("bob", &marketpb.MsgCancelOrder{Sender: bob, Job: "taken"}), "market", 8},
		{"commits to nobody's run", by("bob", &trainingpb.MsgLeave{Sender: bob, Job: "taken"}), "training", 2},
		{"governs", by("bob", &marketpb.MsgUpdateParams{Authority: bob, Params: marketpb.Params{FeePpm: 1, PauseBlocks: 1}}),
			"market", 15},
		{"sends to the budgets of all", by("ann",
			&banktypes.MsgSend{FromAddress: ann, ToAddress: wallet.ModuleAddress("market"), Amount: adapter.Coins(1)}),
			sdkerrors.RootCodespace, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := bare(t)
			txs := c.txs(t, l)
			l.Mempool = slices.Clone(txs[:len(txs)-1])
			must(l.Block(t.Context(), 4*time.Second))(t)
			before := modules(t, l.App)
			l.Mempool = txs[len(txs)-1:]
			in := must(l.Block(t.Context(), 5*time.Second))(t)
			if len(in) != 1 {
				t.Fatalf("%d transactions in the block", len(in))
			}
			r := in[0].Result
			e, refused := transaction.Refusal(r.Codespace, r.Code, r.Log).(*transaction.Error)
			if !refused || e.Space != c.space || e.Code != c.code || e.Text == "" || e.Fix == "" {
				t.Errorf("%s %d: %+v; want %s %d", r.Codespace, r.Code, e, c.space, c.code)
			}
			after := modules(t, l.App)
			for _, name := range []string{"bank", "staking", "distribution", "gov", "registry", "market", "reward", "training"} {
				if !bytes.Equal(before[name], after[name]) {
					t.Errorf("%s changed: %s", name, difference(before[name], after[name]))
				}
			}
		})
	}
}

// An order that finds no workers says why, with a stable code, and ends at its deadline with its budget back,
// less the fee for having waited.
func TestOrderWithoutMatch(t *testing.T) {
	l := bare(t)
	must(l.Check(sign(t, l, keyOf("ann"), ordered("late", 2500, 6))))(t)
	for n := range 6 {
		must(l.Block(t.Context(), time.Duration(10+n)*time.Second))(t)
		if n == 1 {
			if o := must(l.Queries.Market.PlacedOrder(t.Context(), "late"))(t); o.Status != "open" ||
				o.Why != string(market.TooFewWorkers) {
				t.Errorf("%s: %s", o.Status, o.Why)
			}
		}
	}
	if o := must(l.Queries.Market.PlacedOrder(t.Context(), "late"))(t); o.Status != "ended" || o.Why != "expired" {
		t.Errorf("%s: %s", o.Status, o.Why)
	}
	left := must(l.Queries.Coins.Balance(t.Context(), keyOf("ann").Address()))(t)
	if left != 3000-coin.Zen().WaitingFee(0) {
		t.Errorf("ann has %d uzen", left)
	}
}
