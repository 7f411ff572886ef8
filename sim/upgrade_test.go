package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	cmttypes "github.com/cometbft/cometbft/types"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	govtypes "github.com/cosmos/cosmos-sdk/x/gov/types"
	govv1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	chainregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/upgrade"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/ledger"
)

// operator signs as the account that created a validator.
type operator struct{ identity.Keys }

func (o operator) PublicKey() []byte                   { return o.Operator.PubKey().Bytes() }
func (o operator) Sign(message []byte) ([]byte, error) { return o.Operator.Sign(message) }

// hasty lets governance decide within seconds.
func hasty(doc *cmttypes.GenesisDoc) error {
	e, err := wire.NewEncoding()
	if err != nil {
		return err
	}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(doc.AppState, &state); err != nil {
		return err
	}
	var gov govv1.GenesisState
	e.Codec.MustUnmarshalJSON(state[govtypes.ModuleName], &gov)
	period, shorter := 5*time.Second, 4*time.Second
	gov.Params.VotingPeriod, gov.Params.ExpeditedVotingPeriod = &period, &shorter
	state[govtypes.ModuleName] = e.Codec.MustMarshalJSON(&gov)
	doc.AppState, err = json.Marshal(state)
	return err
}

// sign makes the transaction that an account sends next.
func sign(t *testing.T, l *ledger.Ledger, s wallet.Signer, msgs ...sdk.Msg) []byte {
	t.Helper()
	account, sequence, err := client.New(l.Connection, s).Sequence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return must(transaction.Sign(t.Context(), s, transaction.Account{ChainID: l.ChainID, Number: account,
		Sequence: sequence}, 0, msgs...))(t)
}

// send delivers a transaction of an account, which must be executed.
func (w *Network) send(t *testing.T, s wallet.Signer, msgs ...sdk.Msg) {
	t.Helper()
	w.deliver(sign(t, w.ledger, s, msgs...), func(_ transaction.Result, err error) {
		if err != nil {
			t.Error(err)
		}
	})
}

// upgraded is the text that the upgrade adds to every participant.
const upgraded = ", form 2"

// rewrite gives the store of the registry another form: every participant is written again, and the version of the form
// raised.
func rewrite(ctx context.Context, a *app.App) error {
	key := a.CommitMultiStore().(interface {
		StoreKeysByName() map[string]storetypes.StoreKey
	}).StoreKeysByName()[chainregistry.Name]
	kv := sdk.UnwrapSDKContext(ctx).KVStore(key)
	if form := kv.Get([]byte("format")); !bytes.Equal(form, []byte{1}) {
		return fmt.Errorf("the form of the registry is %x", form)
	}
	kv.Set([]byte("format"), []byte{2})
	old := map[string][]byte{}
	it := storetypes.KVStorePrefixIterator(kv, []byte{0})
	for ; it.Valid(); it.Next() {
		old[string(it.Key())] = it.Value()
	}
	for id, raw := range old { // in any order
		var p registry.Participant
		if err := canon.Unmarshal(raw, &p); err != nil {
			return err
		}
		p.Device += upgraded
		kv.Set([]byte(id), canon.MustMarshal(p))
	}
	return it.Close()
}

// plan lets a citizen propose an upgrade and the validators vote for it, in the first blocks.
func (w *Network) plan(t *testing.T, name string, at int64) {
	l := w.ledger
	l.Witness = func() {
		switch l.Height {
		case 3:
			plan := &upgradetypes.MsgSoftwareUpgrade{Plan: upgradetypes.Plan{Name: name, Height: at},
				Authority: authtypes.NewModuleAddress(govtypes.ModuleName).String()}
			deposit := adapter.Coins(10_000_000)
			w.send(t, keyOf("citizen"), must(govv1.NewMsgSubmitProposal([]sdk.Msg{plan}, deposit, keyOf("citizen").Address(),
				"", name, "The next version.", false))(t))
		case 4:
			for _, v := range l.Validators {
				w.send(t, operator{v}, govv1.NewMsgVote(sdk.AccAddress(v.Operator.PubKey().Address()), 1, govv1.OptionYes, ""))
			}
		}
	}
}

// Governance changes the rules at a height in the middle of a run. The old version stops there, and cannot continue;
// the new one opens the same state, changes it and continues: so does the run, to the state root that it has without
// the upgrade.
func TestUpgradeInTheMiddleOfARun(t *testing.T) {
	const name, at = "v2", 20
	c := small(t)
	c.Genesis = hasty
	c.Joins = []Newcomer{{Name: "citizen", Role: crew.Worker, At: 24 * time.Hour}} // never; but it has coins
	w := must(New(c, check.CoinsConserved{}, &check.PaidOnce{}, check.HonestNotSlashed{}, &check.Lineage{Honest: true}))(t)
	l := w.ledger
	l.Config.Home = t.TempDir()
	t.Chdir(l.Config.Home) // where the first application, which has no folder, writes what it waits for
	open := func(upgrades ...app.Upgrade) {
		config := l.Config
		config.Upgrades = upgrades
		l.App = must(app.New(log.NewNopLogger(), l.DB, config))(t)
	}
	applied := int64(0)
	v2 := app.Upgrade{Name: name, Apply: func(ctx context.Context, a *app.App) error {
		applied = sdk.UnwrapSDKContext(ctx).BlockHeight()
		return rewrite(ctx, a)
	}}
	l.Mend = func(err error) error {
		if !errors.Is(err, upgrade.ErrTooOld) || l.Height != at-1 || applied != 0 {
			return err
		}
		open()
		if _, err := l.App.FinalizeBlock(l.Decided); !errors.Is(err, upgrade.ErrTooOld) {
			t.Errorf("the old version started again says %v", err)
		}
		open(v2)
		return nil
	}
	w.plan(t, name, at)
	if _, err := w.Play(); err != nil {
		t.Fatal(err)
	}
	if applied != at {
		t.Errorf("the upgrade was applied at height %d", applied)
	}
	if o := must(w.Outcome())(t); o.Phase != progress.Done || !o.Honest || o.Blocks < at+10 {
		t.Errorf("%+v", o)
	}
	participants := must(l.Queries.Registry.Participants(t.Context()))(t)
	for _, p := range participants {
		if p.Device != "simulated"+upgraded {
			t.Errorf("the upgrade left %+v", p)
		}
	}
	if len(participants) != c.Workers+c.Verifiers {
		t.Errorf("there are %d participants", len(participants))
	}
	// A version that does not know what was carried out does not continue either.
	open()
	l.Mend = nil
	if _, err := l.Block(t.Context(), w.clock.Now+c.BlockTime); !errors.Is(err, upgrade.ErrTooOld) {
		t.Errorf("the old version over the new state says %v", err)
	}
}

// lacking takes the stores of modules out of the state of a chain, which is then that of a version without them.
func lacking(t *testing.T, l *ledger.Ledger, modules ...string) {
	t.Helper()
	for _, name := range modules {
		prefix := []byte("s/k:" + name + "/")
		it := must(l.DB.Iterator(prefix, storetypes.PrefixEndBytes(prefix)))(t)
		var keys [][]byte
		for ; it.Valid(); it.Next() {
			keys = append(keys, bytes.Clone(it.Key()))
		}
		if err := it.Close(); err != nil || len(keys) == 0 {
			t.Fatalf("the store of %s has %d keys, %v", name, len(keys), err)
		}
		for _, key := range keys {
			if err := l.DB.Delete(key); err != nil {
				t.Fatal(err)
			}
		}
	}
	key := fmt.Appendf(nil, "s/%d", l.Height)
	var info storetypes.CommitInfo
	if err := info.Unmarshal(must(l.DB.Get(key))(t)); err != nil {
		t.Fatal(err)
	}
	info.StoreInfos = slices.DeleteFunc(info.StoreInfos, func(s storetypes.StoreInfo) bool {
		return slices.Contains(modules, s.Name)
	})
	if err := l.DB.Set(key, must(info.Marshal())(t)); err != nil {
		t.Fatal(err)
	}
}

// A chain of release 0.1.0 gets the modules that this version adds by the upgrade that this version has: the run
// continues, the new modules take messages, and the state can be opened again.
func TestUpgradeAddsModules(t *testing.T) {
	const at = 20
	added := app.Upgrades[0]
	c := small(t)
	c.Genesis = hasty
	c.Joins = []Newcomer{{Name: "citizen", Role: crew.Worker, At: 24 * time.Hour}} // never; but it has coins
	w := must(New(c, check.CoinsConserved{}, &check.PaidOnce{}, check.HonestNotSlashed{}, &check.Lineage{Honest: true}))(t)
	l := w.ledger
	l.Config.Home = t.TempDir()
	l.Config.Upgrades = []app.Upgrade{} // as the version before
	t.Chdir(l.Config.Home)
	l.App = must(app.New(log.NewNopLogger(), l.DB, l.Config))(t)
	upgraded := false
	l.Mend = func(err error) error {
		if !errors.Is(err, upgrade.ErrTooOld) || l.Height != at-1 || upgraded {
			return err
		}
		upgraded = true
		lacking(t, l, added.Stores.Added...)
		l.Config.Upgrades = nil
		l.App, err = app.New(log.NewNopLogger(), l.DB, l.Config)
		return err
	}
	w.plan(t, added.Name, at)
	planned := l.Witness
	l.Witness = func() {
		if planned(); l.Height == at+1 {
			w.send(t, keyOf("citizen"), &catalogpb.MsgList{Sender: keyOf("citizen").Address(), Kind: "data", Title: "wares",
				Licence: "CC0-1.0", Files: bytes.Repeat([]byte{1}, 32)})
		}
	}
	if _, err := w.Play(); err != nil {
		t.Fatal(err)
	}
	if o := must(w.Outcome())(t); !upgraded || o.Phase != progress.Done || !o.Honest || o.Blocks < at+10 {
		t.Errorf("upgraded: %v, %+v", upgraded, o)
	}
	l.App = must(app.New(log.NewNopLogger(), l.DB, l.Config))(t) // again
	if listed, err := l.Queries.Catalog.Listing(t.Context(), 1); err != nil || listed.Terms.Title != "wares" {
		t.Errorf("a message of a new module left %+v, %v", listed, err)
	}
}
