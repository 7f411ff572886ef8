package sim

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	sdkmath "cosmossdk.io/math"
	abci "github.com/cometbft/cometbft/abci/types"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"
	sdkclient "github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"
	govv1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	govbeta "github.com/cosmos/cosmos-sdk/x/gov/types/v1beta1"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	chainreward "github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/internal/nowork"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/sim/ledger"
)

// state is a chain of four validators that does what its test says, block by block, and counts its coins after each.
type state struct {
	*ledger.Ledger
	t   *testing.T
	now time.Duration
}

// newState begins a chain with accounts of 100 ZEN. change may change its genesis.
func newState(t *testing.T, change func(doc *cmttypes.GenesisDoc) error, names ...string) *state {
	t.Helper()
	var keys []identity.Keys
	for i := range 4 {
		keys = append(keys, identity.NewKeys(canon.Sum("state", []byte{byte(i)})))
	}
	var accounts []chain.Funded
	for _, name := range names {
		accounts = append(accounts, chain.Funded{Address: keyOf(name).Address(), Amount: 100_000_000})
	}
	doc := must(chain.Genesis("state", time.Unix(1_000_000_000, 0), keys, accounts))(t)
	if err := errors.Join(hasty(doc), change(doc)); err != nil {
		t.Fatal(err)
	}
	s := &state{Ledger: must(ledger.New(doc, keys, nowork.Open, dbm.NewMemDB()))(t), t: t}
	s.next()
	return s
}

// next makes a block a second later, and counts the coins.
func (s *state) next() []ledger.Included {
	s.t.Helper()
	in := must(s.Block(s.t.Context(), s.now))(s.t)
	s.now += time.Second
	for _, b := range must(books.Count(s.t.Context(), s.Queries))(s.t) {
		if !b.Balanced() {
			s.t.Fatalf("block %d: the books are wrong: %+v", s.Height, b)
		}
	}
	return in
}

// does lets an account do something, which must succeed, in the next block.
func (s *state) does(signer wallet.Signer, msgs ...sdk.Msg) {
	s.t.Helper()
	s.takes(sign(s.t, s.Ledger, signer, msgs...))
}

func (s *state) takes(tx []byte) {
	s.t.Helper()
	if r := must(s.Check(tx))(s.t); r.Code != 0 {
		s.t.Fatalf("not taken into a block: %s", r.Log)
	}
	for _, in := range s.next() {
		if in.Result.Code != 0 {
			s.t.Fatalf("refused: %s", in.Result.Log)
		}
	}
}

// fails lets an account try something that the next block must refuse, with a code.
func (s *state) fails(space string, code uint32, signer wallet.Signer, msgs ...sdk.Msg) {
	s.t.Helper()
	must(s.Check(sign(s.t, s.Ledger, signer, msgs...)))(s.t)
	all := s.next()
	if len(all) != 1 {
		s.t.Errorf("the block has %d transactions", len(all))
	}
	for _, in := range all {
		if in.Result.Codespace != space || in.Result.Code != code {
			s.t.Errorf("refused by %s %d, not by %s %d: %s", in.Result.Codespace, in.Result.Code, space, code, in.Result.Log)
		}
	}
}

func (s *state) balance(address string) uint64 {
	s.t.Helper()
	return must(s.Queries.Coins.Balance(s.t.Context(), address))(s.t)
}

// validator as the chain knows it, and what it says about its signatures.
func (s *state) validator(i int) (stakingtypes.Validator, slashingtypes.ValidatorSigningInfo) {
	s.t.Helper()
	conn := sdkclient.Context{}.WithClient(s.Connection).WithCodec(s.App.Codec).WithInterfaceRegistry(s.App.Registry)
	v := must(stakingtypes.NewQueryClient(conn).Validator(s.t.Context(), &stakingtypes.QueryValidatorRequest{
		ValidatorAddr: sdk.ValAddress(s.Validators[i].Operator.PubKey().Address()).String(),
	}))(s.t)
	info := must(slashingtypes.NewQueryClient(conn).SigningInfo(s.t.Context(), &slashingtypes.QuerySigningInfoRequest{
		ConsAddress: sdk.ConsAddress(s.Validators[i].Consensus.PubKey().Address()).String(),
	}))(s.t)
	return v.Validator, info.ValSigningInfo
}

func (s *state) operator(i int) wallet.Signer { return operator{s.Validators[i]} }

func (s *state) unjail(i int) sdk.Msg {
	return slashingtypes.NewMsgUnjail(sdk.ValAddress(s.Validators[i].Operator.PubKey().Address()).String())
}

// edit changes what a module of the SDK begins with.
func edit[T any, P interface {
	*T
	sdk.Msg
}](doc *cmttypes.GenesisDoc, module string, change func(P)) error {
	e, err := wire.NewEncoding()
	if err != nil {
		return err
	}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(doc.AppState, &state); err != nil {
		return err
	}
	var genesis T
	e.Codec.MustUnmarshalJSON(state[module], P(&genesis))
	change(&genesis)
	state[module] = e.Codec.MustMarshalJSON(P(&genesis))
	doc.AppState, err = json.Marshal(state)
	return err
}

// A validator that is away loses its vote and a part of its stake, and gets the vote back when it asks for it in time.
// A validator that signs two blocks of one height loses more, and its vote for ever.
func TestValidatorsAnswerForTheirVotes(t *testing.T) {
	const away, twice = 2, 3
	s := newState(t, func(doc *cmttypes.GenesisDoc) error {
		return edit(doc, slashingtypes.ModuleName, func(g *slashingtypes.GenesisState) {
			g.Params.SignedBlocksWindow, g.Params.DowntimeJailDuration = 20, 10*time.Minute
			g.Params.MinSignedPerWindow = sdkmath.LegacyNewDecWithPrec(5, 1)
		})
	})
	s.fails(slashingtypes.ModuleName, slashingtypes.ErrValidatorNotJailed.ABCICode(), s.operator(away), s.unjail(away))
	s.Absent[away] = true
	for range 35 {
		s.next()
	}
	v, info := s.validator(away)
	if !v.Jailed || v.Status == stakingtypes.Bonded || v.Tokens.Uint64() != identity.SelfStake/100*99 || info.Tombstoned {
		t.Fatalf("who was away: %+v, %+v", v, info)
	}
	s.fails(slashingtypes.ModuleName, slashingtypes.ErrValidatorJailed.ABCICode(), s.operator(away), s.unjail(away))
	s.now += 11 * time.Minute
	s.Absent[away] = false
	s.does(s.operator(away), s.unjail(away))
	for range 25 {
		s.next()
	}
	if v, _ := s.validator(away); v.Jailed || v.Status != stakingtypes.Bonded {
		t.Errorf("who is back: %+v", v)
	}

	s.Evidence = []abci.Misbehavior{{
		Type: abci.MisbehaviorType_DUPLICATE_VOTE, Height: s.Height - 1, Time: s.Decided.Time, TotalVotingPower: 400,
		Validator: abci.Validator{Address: s.Validators[twice].Consensus.PubKey().Address(),
			Power: identity.SelfStake / 1_000_000},
	}}
	s.next()
	s.Absent[twice] = true
	s.next()
	v, info = s.validator(twice)
	if !v.Jailed || !info.Tombstoned || v.Tokens.Uint64() != identity.SelfStake/100*95 {
		t.Fatalf("who signed twice: %+v, %+v", v, info)
	}
	s.now += 30 * 24 * time.Hour
	s.fails(slashingtypes.ModuleName, slashingtypes.ErrValidatorJailed.ABCICode(), s.operator(twice), s.unjail(twice))
}

func unchangedGenesis(*cmttypes.GenesisDoc) error { return nil }

// Coins of the community pool go where governance says, and nowhere else.
func TestTreasury(t *testing.T) {
	s := newState(t, unchangedGenesis, "citizen", "builder")
	citizen, builder := keyOf("citizen"), keyOf("builder").Address()
	pool := func() uint64 {
		return s.balance(wallet.ModuleAddress(distrtypes.ModuleName))
	}
	s.does(citizen, &distrtypes.MsgFundCommunityPool{Depositor: citizen.Address(), Amount: adapter.Coins(30_000_000)})
	before, had := pool(), s.balance(builder)
	spend := func(amount uint64) sdk.Msg {
		return &distrtypes.MsgCommunityPoolSpend{Authority: governance, Recipient: builder, Amount: adapter.Coins(amount)}
	}
	s.fails(sdkerrors.RootCodespace, sdkerrors.ErrUnauthorized.ABCICode(), citizen,
		&distrtypes.MsgCommunityPoolSpend{Authority: citizen.Address(), Recipient: citizen.Address(),
			Amount: adapter.Coins(1)})
	for i, c := range []struct {
		amount uint64
		option govv1.VoteOption
		paid   uint64
	}{{20_000_000, govv1.OptionYes, 20_000_000}, {5_000_000, govv1.OptionNo, 0}, {500_000_000, govv1.OptionYes, 0}} {
		s.does(citizen, must(govv1.NewMsgSubmitProposal([]sdk.Msg{spend(c.amount)}, adapter.Coins(10_000_000),
			citizen.Address(), "", "build", "Build it.", false))(t))
		for v := range s.Validators {
			s.does(s.operator(v), govv1.NewMsgVote(sdk.AccAddress(s.Validators[v].Operator.PubKey().Address()), uint64(i+1),
				c.option, ""))
		}
		for range 7 {
			s.next()
		}
		got := s.balance(builder)
		if got-had != c.paid || before-pool() != c.paid {
			t.Errorf("proposal %d over %d uzen: the builder got %d, the pool gave %d", i+1, c.amount, got-had, before-pool())
		}
		before, had = pool(), got
	}
}

// A text is proposed in the form of old wallets, too.
func TestTextOfAnOldWallet(t *testing.T) {
	s := newState(t, unchangedGenesis, "citizen")
	citizen := keyOf("citizen")
	text := must(govv1.NewLegacyContent(govbeta.NewTextProposal("title", "text"), governance))(t)
	s.does(citizen, must(govv1.NewMsgSubmitProposal([]sdk.Msg{text}, adapter.Coins(10_000_000), citizen.Address(), "",
		"title", "text", false))(t))
}

// Where transactions have a fee, the first ones of a new account have none, and another account may pay for later ones
// by a grant.
func TestNewcomersPayNothing(t *testing.T) {
	s := newState(t, unchangedGenesis, "citizen", "provider")
	s.Config.Governed = true
	s.App = must(app.New(log.NewNopLogger(), s.DB, s.Config))(t)
	s.next()
	citizen, provider := keyOf("citizen"), keyOf("provider")
	send := &banktypes.MsgSend{FromAddress: provider.Address(), ToAddress: citizen.Address(), Amount: adapter.Coins(1000)}
	if r := must(s.App.CheckTx(&abci.RequestCheckTx{Tx: sign(t, s.Ledger, provider,
		send)}))(t); r.Code != sdkerrors.ErrInsufficientFee.ABCICode() {
		t.Errorf("coins that move for nothing: %d %s", r.Code, r.Log)
	}
	had := s.balance(provider.Address())
	s.does(provider, &registrypb.MsgRegister{Sender: provider.Address(), PeerId: "peer",
		Roles: []registrypb.Role{registrypb.Role(crew.Worker)}, Stake: 2_000_000},
		&marketpb.MsgOffer{Sender: provider.Address(), Role: registrypb.Role(crew.Worker), Price: 100, Slots: 1})
	for range app.FreeTransactions - 1 {
		s.does(provider, &registrypb.MsgUpdateAddresses{Sender: provider.Address(), PeerId: "peer",
			Addresses: []string{"/ip4/10.0.0.1"}})
	}
	if got := s.balance(provider.Address()); got != had-2_000_000 {
		t.Errorf("the first transactions cost %d uzen", had-2_000_000-got)
	}
	update := &registrypb.MsgUpdateAddresses{Sender: provider.Address(), PeerId: "peer",
		Addresses: []string{"/ip4/10.0.0.2"}}
	if r := must(s.App.CheckTx(&abci.RequestCheckTx{Tx: sign(t, s.Ledger, provider,
		update)}))(t); r.Code != sdkerrors.ErrInsufficientFee.ABCICode() {
		t.Errorf("one transaction too many is free: %d %s", r.Code, r.Log)
	}
	grant := must(feegrant.NewMsgGrantAllowance(&feegrant.BasicAllowance{SpendLimit: adapter.Coins(15_000)},
		sdk.MustAccAddressFromBech32(citizen.Address()), sdk.MustAccAddressFromBech32(provider.Address())))(t)
	s.takes(s.granted(citizen, "", 10_000, grant))
	before, had := s.balance(citizen.Address()), s.balance(provider.Address())
	s.takes(s.granted(provider, citizen.Address(), 10_000, update))
	if paid := before - s.balance(citizen.Address()); paid != 10_000 || s.balance(provider.Address()) != had {
		t.Errorf("who granted it paid %d uzen, and the provider %d", paid, had-s.balance(provider.Address()))
	}
	if r := must(s.Check(s.granted(provider, citizen.Address(), 10_000,
		update)))(t); r.Codespace != feegrant.DefaultCodespace {
		t.Errorf("beyond what was granted: %s %d %s", r.Codespace, r.Code, r.Log)
	}
}

// granted is the next transaction of an account whose fee payer pays; "": the account itself.
func (s *state) granted(signer *wallet.Key, payer string, fee uint64, msgs ...sdk.Msg) []byte {
	t := s.t
	t.Helper()
	number, sequence, err := client.New(s.Connection, signer).Sequence(t.Context())
	b := s.App.Tx.NewTxBuilder()
	if err := errors.Join(err, b.SetMsgs(msgs...)); err != nil {
		t.Fatal(err)
	}
	b.SetGasLimit(1_000_000)
	b.SetFeeAmount(adapter.Coins(fee))
	if payer != "" {
		b.SetFeeGranter(sdk.MustAccAddressFromBech32(payer))
	}
	key := &secp256k1.PubKey{Key: signer.PublicKey()}
	data := &signing.SingleSignatureData{SignMode: signing.SignMode_SIGN_MODE_DIRECT}
	set := func() {
		if err := b.SetSignatures(signing.SignatureV2{PubKey: key, Data: data, Sequence: sequence}); err != nil {
			t.Fatal(err)
		}
	}
	set()
	text := must(authsigning.GetSignBytesAdapter(t.Context(), s.App.Tx.SignModeHandler(), data.SignMode,
		authsigning.SignerData{
			Address: signer.Address(), ChainID: s.ChainID, PubKey: key, AccountNumber: number, Sequence: sequence,
		}, b.GetTx()))(t)
	data.Signature = must(signer.Sign(text))(t)
	set()
	return must(s.App.Tx.TxEncoder()(b.GetTx()))(t)
}

// asked is an order of one round of units without verifiers.
func asked(name, consumer string, priceCap uint64, workers, units uint32) *marketpb.MsgOrder {
	d := canon.Sum("spec")
	return &marketpb.MsgOrder{
		Sender: consumer, Budget: 1_000_000, PriceCap: priceCap, WorkersMin: workers, WorkersTarget: workers,
		WorkersMax: workers,
		Terms: runpb.FromTerms(terms.Terms{
			Job: name, Spec: d, SpecCID: "spec", Genesis: terms.Checkpoint{Root: d, CID: "genesis"}, Rounds: 1, Units: units,
			Segments: 2, UnitFlops: cost.Flops,
			Deadlines: terms.Deadlines{Train: 4, Audit: 4, Attest: 40, Challenge: 1}, Window: 1,
		}),
	}
}

// A provider that keeps its tier but misses its duties has less uptime, and gets less.
func TestMissedDutiesAreDowntime(t *testing.T) {
	rules := rules()
	s := newState(t, func(doc *cmttypes.GenesisDoc) error {
		schedule := reward.DefaultSchedule()
		schedule.PerEpoch = 1_000_000
		return errors.Join(ledger.SetParams(doc, "registry", rules), ledger.SetParams(doc, chainreward.Name, schedule))
	}, "citizen", "diligent", "lazy")
	citizen, names := keyOf("citizen"), []string{"diligent", "lazy"}
	beat := func() {
		for _, name := range names {
			must(s.Check(sign(t, s.Ledger, keyOf(name), &registrypb.MsgHeartbeat{Sender: keyOf(name).Address()})))(t)
		}
	}
	for _, name := range names {
		me := keyOf(name).Address()
		s.does(keyOf(name), &registrypb.MsgRegister{
			Sender: me, PeerId: "peer", Roles: []registrypb.Role{registrypb.Role(crew.Worker)}, Stake: 20_000_000,
			Tier:     registrypb.Tier(registry.Bronze),
			Hardware: registrypb.FromHardware(registry.Hardware{Memory: 8192, Upload: 10_000}),
		}, &marketpb.MsgOffer{Sender: me, Role: registrypb.Role(crew.Worker), Price: 100, Slots: 1})
	}
	for s.Height < 2*rules.EpochBlocks {
		if s.Height%rules.BeatBlocks == 1 {
			beat()
		}
		if s.Height == rules.EpochBlocks+2 {
			must(s.Check(sign(t, s.Ledger, citizen, asked("job", citizen.Address(), 100, 2, 2))))(t)
		}
		s.next()
		r, err := s.Queries.Training.Run(t.Context(), "job")
		if err != nil {
			continue
		}
		d := canon.Sum("work")
		if owed := r.Work(keyOf("diligent").Address()); len(owed) > 0 && s.Height%rules.BeatBlocks != 1 {
			u := owed[0]
			must(s.Check(sign(t, s.Ledger, keyOf("diligent"), &trainingpb.MsgCommit{
				Sender: keyOf("diligent").Address(), Job: "job", Round: r.Round, Unit: u.Index, Attempt: u.Attempt,
				Commitment: runpb.FromCommitment(work.Commitment{Segments: []canon.Digest{d, d, d}, Update: d, UpdateCID: "update",
					Bytes: 1, HiddenRoots: d}),
			})))(t)
		}
	}
	got := func(name string) (base, slashed uint64, reasons []string) {
		for _, r := range must(s.Queries.Reward.Rewarded(t.Context(), keyOf(name).Address()))(t) {
			if r.Job != "epoch/"+strconv.Itoa(1) {
				continue
			}
			switch r.Kind {
			case reward.Base:
				base += r.Amount
				reasons = append(reasons, r.Reason)
			case reward.Slash:
				slashed += r.Amount
			}
		}
		return base, slashed, reasons
	}
	pot := uint64(200_000) // a fifth of the new coins of the epoch
	if base, slashed, why := got("diligent"); base != pot || slashed != 0 ||
		!slices.Equal(why, []string{reward.KeptUptime}) {
		t.Errorf("who did its work gets %d of %d uzen and loses %d: %v", base, pot, slashed, why)
	}
	if base, slashed, why := got("lazy"); base != 0 || slashed != 200_000 ||
		!slices.Equal(why, []string{reward.Downtime}) {
		t.Errorf("who missed it gets %d uzen and loses %d: %v", base, slashed, why)
	}
}

// Of two orders that want the same worker in the same block the one that pays more has it, whatever they are called.
func TestWhoPaysMoreIsServedFirst(t *testing.T) {
	s := newState(t, unchangedGenesis, "citizen", "other", "worker")
	citizen, other, worker := keyOf("citizen"), keyOf("other"), keyOf("worker")
	more := asked("z-last-name", other.Address(), 200, 1, 1)
	more.Budget *= 2
	for _, tx := range [][]byte{
		sign(t, s.Ledger, other, more), sign(t, s.Ledger, citizen, asked("a-first-name", citizen.Address(), 100, 1, 1)),
		sign(t, s.Ledger, worker, &registrypb.MsgRegister{Sender: worker.Address(), PeerId: "peer",
			Roles: []registrypb.Role{registrypb.Role(crew.Worker)}, Stake: 2_000_000},
			&marketpb.MsgOffer{Sender: worker.Address(), Role: registrypb.Role(crew.Worker), Price: 100, Slots: 1}),
	} {
		if r := must(s.Check(tx))(t); r.Code != 0 {
			t.Fatal(r.Log)
		}
	}
	s.next()
	s.next()
	if _, err := s.Queries.Training.Run(t.Context(), "z-last-name"); err != nil {
		t.Errorf("who pays more waits: %v", err)
	}
	if o := must(s.Queries.Market.PlacedOrder(t.Context(), "a-first-name"))(t); o.Why != string(market.TooFewWorkers) {
		t.Errorf("who pays less: %+v", o)
	}
}
