package hosting

import (
	"context"
	"errors"
	"slices"
	"testing"

	"cosmossdk.io/collections"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/chain/adapter/custody"
	"github.com/starling-network/starling/chain/referee/answered"
	"github.com/starling-network/starling/chain/referee/answered/answeredtest"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/hosting"
)

// purse has the coins of accounts; those of the module are under its name, those of the community pool under "".
type purse map[string]int64

func (p purse) move(from, to string, amount sdk.Coins) error {
	n := amount.AmountOf("uzen").Int64()
	if p[from] < n {
		return errors.New("no funds")
	}
	p[from], p[to] = p[from]-n, p[to]+n
	return nil
}

func (p purse) SendCoinsFromAccountToModule(_ context.Context, from sdk.AccAddress, module string,
	amount sdk.Coins) error {
	return p.move(account.Address(from), module, amount)
}

func (p purse) SendCoinsFromModuleToAccount(_ context.Context, module string, to sdk.AccAddress,
	amount sdk.Coins) error {
	return p.move(module, account.Address(to), amount)
}

func (p purse) FundCommunityPool(_ context.Context, amount sdk.Coins, _ sdk.AccAddress) error {
	return p.move(Name, "", amount)
}

func (purse) Find(context.Context, string) (coin.Registered, error) { return coin.Zen(), nil }
func (purse) Open(context.Context, string) (coin.Registered, error) { return coin.Zen(), nil }

// court is a chain with one hosted model, its provider and accusers.
type court struct {
	t      *testing.T
	k      *Keeper
	ctx    sdk.Context
	coins  purse
	model  *answeredtest.Hosted
	keys   map[string]*secp256k1.PrivKey
	height int64
}

const (
	bond  = 5_000_000
	least = 1_000_000 // the default
	funds = 300_000_000
)

func open(t *testing.T) *court {
	t.Helper()
	service, ctx := storetest.Open(t, Name)
	sdk.GetConfig().SetBech32PrefixForAccount(account.Prefix, account.Prefix+"pub")
	c := &court{t: t, ctx: ctx.WithChainID("starling-1"), coins: purse{}, model: answeredtest.Host(t, 1),
		keys: map[string]*secp256k1.PrivKey{}, height: 10}
	for _, name := range []string{"provider", "accuser", "other"} {
		d := canon.Sum("test", []byte(name))
		c.keys[name] = &secp256k1.PrivKey{Key: d[:]}
		c.coins[c.at(name)] = funds
	}
	var err error
	held := custody.Custody{Module: Name, Bank: c.coins, Pool: c.coins, Coins: c.coins}
	if c.k, err = NewKeeper(service, held, "gov", nil); err != nil {
		t.Fatal(err)
	}
	files := canon.Sum("files")
	_, err = c.send().Register(c.now(), &hostingpb.MsgRegister{Sender: c.at("provider"), Name: "m", Files: files[:],
		Weights: c.model.Root[:]})
	c.must(err)
	_, err = c.send().Host(c.now(), &hostingpb.MsgHost{Sender: c.at("provider"), Model: 1, Url: "http://x", Bond: bond})
	c.must(err)
	return c
}

func (c *court) at(name string) string { return account.Address(c.keys[name].PubKey().Address()) }
func (c *court) send() messages        { return messages{c.k} }
func (c *court) now() sdk.Context      { return c.ctx.WithBlockHeight(c.height) }

func (c *court) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// sign is a receipt of the provider, with a change.
func (c *court) sign(change func(r *answer.Receipt)) answer.Signed {
	c.t.Helper()
	r := c.model.Answer(c.t, c.at("provider"))
	r.Height = 10
	r.Answer = slices.Clone(r.Answer)
	if change != nil {
		change(&r)
	}
	key := c.keys["provider"]
	s, err := answer.Sign(r, key.PubKey().Bytes(), key.Sign)
	c.must(err)
	return s
}

func lie(r *answer.Receipt) { r.Answer[3] = (r.Answer[3] + 1) % answeredtest.Vocab }

func (c *court) accuse(name string, s answer.Signed) (uint64, error) {
	r, err := c.send().Accuse(c.now(), &hostingpb.MsgAccuse{Sender: c.at(name), Receipt: s.Encode(),
		Program: c.model.Program.Encode()})
	if err != nil {
		return 0, err
	}
	return r.Accusation, nil
}

func (c *court) blocks(n int64) {
	c.t.Helper()
	for range n {
		c.must(c.k.EndBlock(c.now()))
		c.height++
	}
}

// move makes the next move of an accusation by an honest execution, and returns the gas that it used.
func (c *court) move(id uint64, s answer.Signed) uint64 {
	c.t.Helper()
	x, err := c.k.Accusation(c.now(), id)
	c.must(err)
	of, err := answered.Open(s.Receipt, x.From, c.model.Program.Encode())
	c.must(err)
	run, err := of.Witness(1, c.model.Weights, c.model.Roots)
	c.must(err)
	next := dispute.NextChallengerMove
	if x.Game.Turn == dispute.Asserter {
		next = dispute.NextAsserterMove
	}
	m, err := next(x.Game, run)
	c.must(err)
	now := c.now()
	before := now.GasMeter().GasConsumed()
	_, err = c.send().Move(now, &hostingpb.MsgMove{Sender: x.Game.Mover(), Accusation: id, Body: m.Encode()})
	c.must(err)
	return now.GasMeter().GasConsumed() - before
}

// holds compares the gains of accounts and the coins of the module with wanted ones.
func (c *court) holds(at string, gains map[string]int64, module int64) {
	c.t.Helper()
	for name, gain := range gains {
		has := c.coins[name]
		if c.keys[name] != nil {
			has = c.coins[c.at(name)] - funds
		}
		if has != gain {
			c.t.Errorf("%s: %q gained %d uzen, want %d", at, name, has, gain)
		}
	}
	if c.coins[Name] != module {
		c.t.Errorf("%s: the module has %d uzen, want %d", at, c.coins[Name], module)
	}
}

// The provider of a wrong answer loses its bond, half of it to the accuser and half to the community pool.
func TestWrongAnswerCostsTheBond(t *testing.T) {
	c := open(t)
	s := c.sign(lie)
	before := c.ctx.GasMeter().GasConsumed()
	id, err := c.accuse("accuser", s)
	c.must(err)
	t.Logf("an accusation uses %d gas", c.ctx.GasMeter().GasConsumed()-before)
	c.holds("accused", map[string]int64{"provider": -bond, "accuser": -least}, bond+least)
	other, err := c.accuse("other", c.sign(func(r *answer.Receipt) { lie(r); r.Seed++ }))
	c.must(err)
	if _, err := c.accuse("other", s); !errors.Is(err, answer.ErrOpen) {
		t.Errorf("a second accusation of a receipt: %v", err)
	}
	for _, who := range []string{"accuser", "other"} {
		if _, err := c.send().Move(c.now(), &hostingpb.MsgMove{Sender: c.at(who), Accusation: id,
			Body: dispute.Move{Pick: &dispute.Pick{}}.Encode()}); !errors.Is(err, dispute.ErrNotYours) {
			t.Error(err)
		}
	}
	c.blocks(5)
	t.Logf("the tree uses %d gas, the last question %d", c.move(id, s), c.move(id, s))
	c.holds("convicted", map[string]int64{"provider": -bond, "accuser": bond / 2, "other": 0, "": bond / 2}, 0)
	for _, id := range []uint64{id, other} {
		x, err := c.k.Accusation(c.now(), id)
		if err != nil || x.Open() || x.Convicted() != (id != other) {
			t.Errorf("%+v, %v", x, err)
		}
		if ok, err := c.k.accusations.shown.Has(c.now(), id); ok || err != nil {
			t.Errorf("what was shown is kept: %v", err)
		}
	}
	if _, err := c.accuse("other", s); !errors.Is(err, hosting.ErrClosed) {
		t.Errorf("the bond is taken twice: %v", err)
	}
	c.blocks(answer.MoveBlocks + 1)
}

// An accuser of a right answer loses its bond: half to the provider, whose own bond stays, and half to the community
// pool.
func TestFalseAccuserPaysTheProvider(t *testing.T) {
	c := open(t)
	s := c.sign(nil)
	id, err := c.accuse("accuser", s)
	c.must(err)
	c.move(id, s)
	c.move(id, s) // claims that the tree has another output, which it has not
	c.holds("decided", map[string]int64{"provider": least/2 - bond, "accuser": -least, "": least / 2}, bond)
	if id, err = c.accuse("accuser", s); err != nil {
		t.Fatal(err)
	}
	c.move(id, s)
	c.blocks(answer.MoveBlocks + 2) // a silent accuser
	c.holds("silent", map[string]int64{"provider": least - bond, "accuser": -2 * least, "": least}, bond)
}

// A provider that shows nothing loses, also if it left before, whose bond stays until the accusation is decided.
func TestSilentProviderLoses(t *testing.T) {
	c := open(t)
	_, err := c.send().Leave(c.now(), &hostingpb.MsgLeave{Sender: c.at("provider"), Model: 1})
	c.must(err)
	c.height += 19_900
	id, err := c.accuse("accuser", c.sign(func(r *answer.Receipt) { r.Height = 19_000 }))
	c.must(err)
	c.blocks(answer.MoveBlocks)
	x, err := c.k.Accusation(c.now(), id)
	if err != nil || !x.Open() {
		t.Fatalf("decided early: %+v, %v", x, err)
	}
	c.holds("waiting", map[string]int64{"provider": -bond, "accuser": -least}, bond+least)
	c.blocks(2)
	c.holds("silent", map[string]int64{"provider": -bond, "accuser": bond / 2, "": bond / 2}, 0)
}

// The bond of a provider that left returns once an accusation of it is decided in its favour.
func TestBondWaitsForAccusation(t *testing.T) {
	c := open(t)
	_, err := c.send().Leave(c.now(), &hostingpb.MsgLeave{Sender: c.at("provider"), Model: 1})
	c.must(err)
	c.height += 19_999
	s := c.sign(func(r *answer.Receipt) { r.Height = 19_000 })
	id, err := c.accuse("accuser", s)
	c.must(err)
	c.blocks(100)
	c.holds("waiting", map[string]int64{"provider": -bond}, bond+least)
	c.move(id, s)
	c.move(id, s)
	c.blocks(2)
	c.holds("returned", map[string]int64{"provider": least / 2, "accuser": -least, "": least / 2}, 0)
}

func TestAccusationsThatAreRefused(t *testing.T) {
	c := open(t)
	for name, x := range map[string]struct {
		by     string
		change func(r *answer.Receipt)
		rule   error
	}{
		"another network":  {"accuser", func(r *answer.Receipt) { r.Chain = "starling-2" }, answer.ErrAccusation},
		"another model":    {"accuser", func(r *answer.Receipt) { r.Model = 2 }, ErrNone},
		"itself":           {"provider", nil, answer.ErrAccusation},
		"a later block":    {"accuser", func(r *answer.Receipt) { r.Height = 11 }, answer.ErrAccusation},
		"another program":  {"accuser", func(r *answer.Receipt) { r.Program[0]++ }, answered.ErrCase},
		"a longer program": {"accuser", func(r *answer.Receipt) { r.Prompt = make([]int32, 70) }, answered.ErrCase},
	} {
		if _, err := c.accuse(x.by, c.sign(x.change)); !errors.Is(err, x.rule) {
			t.Errorf("%s: %v", name, err)
		}
	}
	forged := c.sign(nil)
	forged.Receipt.Answer[0]++
	if _, err := c.accuse("accuser", forged); !errors.Is(err, answer.ErrForged) {
		t.Error(err)
	}
	old := c.sign(nil)
	c.height += 20_001
	if _, err := c.accuse("accuser", old); !errors.Is(err, answer.ErrAccusation) {
		t.Error(err)
	}
	c.height = 10
	c.coins[c.at("accuser")] = least - 1
	if _, err := c.accuse("accuser", old); !errors.Is(err, custody.ErrFunds) {
		t.Error(err)
	}
	for i := range maxAccused {
		_, err := c.accuse("other", c.sign(func(r *answer.Receipt) { r.Seed = uint64(i) }))
		c.must(err)
	}
	if _, err := c.accuse("other", old); !errors.Is(err, hosting.ErrMany) {
		t.Error(err)
	}
	locked := int64(least<<maxAccused - least)
	c.holds("accused", map[string]int64{"other": -locked}, bond+locked)
	for id, rule := range map[uint64]error{99: ErrNone, 2: dispute.ErrEncoding} {
		if _, err := c.send().Move(c.now(), &hostingpb.MsgMove{Sender: c.at("other"), Accusation: id}); !errors.Is(err,
			rule) && !errors.Is(err, dispute.ErrEncoding) {
			t.Errorf("accusation %d: %v", id, err)
		}
	}
}

// An accomplice that takes all places of accusations of a provider loses more than the bond of the provider.
func TestAccomplicesPay(t *testing.T) {
	c := open(t)
	receipts := map[uint64]answer.Signed{}
	for i := range maxAccused {
		s := c.sign(func(r *answer.Receipt) { r.Height = int64(i + 1) })
		id, err := c.accuse("other", s)
		c.must(err)
		receipts[id] = s
	}
	for id, s := range receipts {
		c.move(id, s)
	}
	c.blocks(answer.MoveBlocks + 2) // the accomplice is silent
	if lost := c.coins[""]; lost < 20*bond {
		t.Errorf("it lost %d uzen, the provider can lose %d", lost, bond)
	}
	if _, err := c.accuse("accuser", c.sign(lie)); err != nil {
		t.Error(err)
	}
}

// The bonds of accused providers that left keep no other bond from returning.
func TestAccusedBondsAreInNoWay(t *testing.T) {
	c := open(t)
	id, err := c.accuse("accuser", c.sign(nil))
	c.must(err)
	for model := range uint64(settled) {
		p := hosting.Place{Model: 10 + model, Provider: c.at("other"), Bond: 1, Left: true, Until: 5}
		c.must(c.k.place(c.now(), hosting.Place{}, p))
		c.must(c.k.accusations.against.Set(c.now(), collections.Join3(p.Model, p.Provider, id)))
	}
	honest := hosting.Place{Model: 1000, Provider: c.at("other"), Bond: least, Left: true, Until: 6}
	c.must(c.k.place(c.now(), hosting.Place{}, honest))
	c.blocks(3)
	if _, err := c.k.Place(c.now(), honest.Model, honest.Provider); !errors.Is(err, ErrNone) {
		t.Errorf("the bond does not return: %v", err)
	}
}
