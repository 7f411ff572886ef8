package client_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"
	govv1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	clienttypes "github.com/cosmos/ibc-go/v11/modules/core/02-client/types"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
	"github.com/starling-network/starling/protocol/run/crew"
)

// dailyFees is what the owner of the tests pays for a machine in a day, in uzen.
const dailyFees = 50_000

// fleetOf is a chain whose validator asks for the price of gas, with an owner that has coins, and others without.
func fleetOf(t *testing.T, others ...string) *network {
	n := &network{t: t, ctx: t.Context(), config: chain.Config{
		Home: t.TempDir(), ChainID: "test", BlockTime: 50 * time.Millisecond, Log: t.Output(), GasPrice: chain.Governed,
		Accounts: []chain.Funded{{Address: key("owner").Address(), Amount: funds}, {Address: key("rich").Address(),
			Amount: funds}},
	}}
	n.open(append([]string{"owner", "rich"}, others...)...)
	t.Cleanup(func() { n.validator.Stop() })
	return n
}

// invite lets the owner invite a machine by a key.
func (n *network) invite(name string) {
	n.t.Helper()
	n.must(n.clients["owner"].Registry.Invite(n.ctx, module.Invitation{Key: key(name).PublicKey(), Stake: stake,
		DailyFees: dailyFees, Until: 100_000}))
}

// enrol makes the account of a name a machine, by the key of an invitation, and offers its work.
func (n *network) enrol(name, invitation string) error {
	c := n.clients[name]
	m, err := module.Admission("test", c.Address(), n.clients["owner"].Address(), key(invitation).PublicKey(),
		key(invitation).Sign)
	n.must(err)
	return c.Registry.Enrol(n.ctx, m, registry.Participant{Roles: []crew.Role{crew.Worker}, PeerID: "peer"},
		market.Offer{Role: crew.Worker, Price: 10, Slots: 1})
}

func (n *network) holds(name string) uint64 {
	n.t.Helper()
	b, err := n.clients["owner"].Coins.Balance(n.ctx, key(name).Address())
	n.must(err)
	return b
}

// A machine without coins enrols, works and pays no fee of its own: its owner does, up to a limit a day. The owner lets
// it drain and revokes it, and the key signs nothing from the next block on.
func TestAMachineWorksForItsOwner(t *testing.T) {
	t.Parallel()
	n := fleetOf(t, "machine", "second", "third")
	owner, machine := n.clients["owner"], n.clients["machine"]
	n.invite("invitation")
	before := n.holds("owner")
	n.must(n.enrol("machine", "invitation"))
	list, err := owner.Registry.Fleet(n.ctx, owner.Address())
	n.must(err)
	if len(list) != 1 || list[0].ID != machine.Address() || list[0].Machine.Owner != owner.Address() ||
		list[0].Stake != stake || !list[0].Has(crew.Worker) {
		t.Fatalf("the fleet is %+v", list)
	}
	if b := n.holds("owner"); b != before {
		t.Errorf("the enrolment cost the owner %d uzen", before-b)
	}
	for i := range 18 { // the first sixteen of its transactions are free
		n.must(machine.Market.Offer(n.ctx, crew.Worker, uint64(20+i), 1))
	}
	n.must(machine.Market.Offer(n.ctx, crew.Worker, 0, 0)) // needs little gas, and the fee of another account
	n.must(machine.Market.Offer(n.ctx, crew.Worker, 10, 1))
	if spent := before - n.holds("owner"); spent == 0 || spent > dailyFees {
		t.Errorf("the owner paid %d uzen for transactions of its machine", spent)
	}
	// the invitation served once, and another is for an account without coins
	if err := n.enrol("second", "invitation"); !errors.Is(err, fleet.ErrInvitation) {
		t.Errorf("an invitation serves twice: %v", err)
	}
	n.invite("next")
	if err := n.enrol("rich", "next"); !errors.Is(err, fleet.ErrInvitation) {
		t.Errorf("an account with coins becomes a machine: %v", err)
	}
	stolen, err := module.Admission("test", n.clients["third"].Address(), n.clients["owner"].Address(),
		key("next").PublicKey(), key("other").Sign)
	n.must(err)
	if err := n.clients["third"].Registry.Enrol(n.ctx, stolen, registry.Participant{PeerID: "peer"}); err == nil {
		t.Error("an account becomes a machine by the signature of another key")
	}
	n.must(owner.Registry.ChangeMachine(n.ctx, machine.Address(), true, 1_000_000))
	if err := machine.Market.Offer(n.ctx, crew.Worker, 10, 1); err == nil {
		t.Error("a machine that drains offers its work")
	}
	p, err := owner.Registry.Participant(n.ctx, machine.Address())
	n.must(err)
	if p.Stake != stake+1_000_000 || !p.Machine.Drains {
		t.Errorf("it drains: %+v", p)
	}
	n.must(owner.Registry.ChangeMachine(n.ctx, machine.Address(), false, 0))
	n.must(machine.Market.Offer(n.ctx, crew.Worker, 10, 1))
	for _, other := range []string{"rich", "machine"} {
		if err := n.clients[other].Registry.Revoke(n.ctx, machine.Address()); err == nil {
			t.Errorf("%s revokes the machine", other)
		}
	}
	n.must(owner.Registry.Revoke(n.ctx, machine.Address()))
	for _, m := range []sdk.Msg{
		&marketpb.MsgOffer{Sender: machine.Address(), Role: registrypb.Role_ROLE_WORKER, Price: 1, Slots: 1},
		&registrypb.MsgRegister{Sender: machine.Address(), PeerId: "peer"},
		&trainingpb.MsgCommit{Sender: machine.Address(), Job: "a"},
		&trainingpb.MsgAttest{Sender: machine.Address(), Job: "a"},
	} {
		if _, err := machine.Submit(n.ctx, m); !errors.Is(err, fleet.ErrMachine) {
			t.Errorf("a revoked machine sends %T: %v", m, err)
		}
	}
	// an invitation is taken back at once
	had := n.holds("owner")
	list, err = owner.Registry.Fleet(n.ctx, owner.Address())
	n.must(err)
	for _, p := range list {
		if p.Machine.Until > 0 {
			n.must(owner.Registry.Revoke(n.ctx, p.ID))
		}
	}
	if got := n.holds("owner"); got+100_000 < had+stake || got > had+stake {
		t.Errorf("the owner has %d uzen, and had %d before it took an invitation for %d back", got, had, stake)
	}
}

// moneyMoves are messages of every module. Each moves coins, stakes or shares of an account, changes the account that
// is paid, or lets another key do one of these.
func moneyMoves(me, owner, thief string) []sdk.Msg {
	coins, coin := adapter.Coins(1), adapter.Coins(1)[0]
	allowance, err := feegrant.NewMsgGrantAllowance(&feegrant.BasicAllowance{}, sdk.MustAccAddressFromBech32(me),
		sdk.MustAccAddressFromBech32(thief))
	if err != nil {
		panic(err)
	}
	address := func(prefix string) string {
		b, err := sdk.Bech32ifyAddressBytes(prefix, sdk.MustAccAddressFromBech32(thief))
		if err != nil {
			panic(err)
		}
		return b
	}
	validator := address("starlingvaloper")
	transfer := transfertypes.NewMsgTransfer("transfer", "channel-0", coin, me, thief, clienttypes.NewHeight(0, 100), 0,
		"")
	return []sdk.Msg{
		&banktypes.MsgSend{FromAddress: me, ToAddress: thief, Amount: coins},
		&banktypes.MsgSend{FromAddress: me, ToAddress: owner, Amount: coins},
		&banktypes.MsgMultiSend{Inputs: []banktypes.Input{{Address: me, Coins: coins}},
			Outputs: []banktypes.Output{{Address: thief, Coins: coins}}},
		&stakingtypes.MsgDelegate{DelegatorAddress: me, ValidatorAddress: validator, Amount: coin},
		&stakingtypes.MsgUndelegate{DelegatorAddress: me, ValidatorAddress: validator, Amount: coin},
		&distrtypes.MsgSetWithdrawAddress{DelegatorAddress: me, WithdrawAddress: thief},
		&distrtypes.MsgFundCommunityPool{Depositor: me, Amount: coins},
		&distrtypes.MsgWithdrawDelegatorReward{DelegatorAddress: me, ValidatorAddress: validator},
		&govv1.MsgDeposit{ProposalId: 1, Depositor: me, Amount: coins},
		&govv1.MsgVote{ProposalId: 1, Voter: me, Option: govv1.OptionYes},
		allowance, transfer,
		&marketpb.MsgCancelOrder{Sender: me, Job: "a"}, &marketpb.MsgTopUpJob{Sender: me, Job: "a", Amount: 1},
		&marketpb.MsgOrder{Sender: me, Budget: 1},
		&rewardpb.MsgPayRevenue{Sender: me, Job: "a", Amount: 1}, &rewardpb.MsgClaimRevenue{Sender: me, Job: "a"},
		&registrypb.MsgSetPayee{Sender: me, Participant: me, Payee: thief},
		&registrypb.MsgUnstake{Sender: me, Amount: 1}, &registrypb.MsgUnjail{Sender: me},
		&registrypb.MsgInvite{Owner: me, Key: key("x").PublicKey(), Stake: stake, Until: 1000},
		&registrypb.MsgChangeMachine{Owner: me, Machine: me}, &registrypb.MsgRevoke{Owner: me, Machine: me},
		&registrypb.MsgEnrol{Sender: me, Key: key("x").PublicKey(), Signature: make([]byte, 64), Owner: thief},
	}
}

// A thief with the key of a machine moves nothing: not the coins of its address, not its stake, not its pay, and not
// the coins of the owner, of which it spends no more than the fees of a day.
func TestAStolenMachineKeyMovesNothing(t *testing.T) {
	t.Parallel()
	n := fleetOf(t, "machine")
	owner, machine := n.clients["owner"], n.clients["machine"]
	n.invite("invitation")
	n.must(n.enrol("machine", "invitation"))
	_, err := n.clients["rich"].Coins.Send(n.ctx, machine.Address(), coin.Coin{}, 1_000_000, "") // by mistake
	n.must(err)
	before := map[string]uint64{}
	for _, name := range []string{"owner", "machine"} {
		before[name] = n.holds(name)
	}
	thief := key("thief").Address()
	for _, m := range moneyMoves(machine.Address(), owner.Address(), thief) {
		if _, err := machine.Submit(n.ctx, m); !errors.Is(err, fleet.ErrMachine) {
			t.Errorf("%s: %v", sdk.MsgTypeURL(m), err)
		}
		work := &marketpb.MsgOffer{Sender: machine.Address(), Role: registrypb.Role_ROLE_WORKER, Price: 1, Slots: 1}
		if _, err := machine.Submit(n.ctx, work, m); !errors.Is(err, fleet.ErrMachine) {
			t.Errorf("%s after an offer: %v", sdk.MsgTypeURL(m), err)
		}
	}
	for _, name := range []string{"owner", "machine"} {
		if b := n.holds(name); b != before[name] {
			t.Errorf("%s has %d uzen, and had %d", name, b, before[name])
		}
	}
	if b := n.holds("thief"); b != 0 {
		t.Errorf("the thief has %d uzen", b)
	}
	// other ways through messages that a machine may send
	self := machine.Address()
	for name, m := range map[string]sdk.Msg{
		"a payee": &registrypb.MsgRegister{Sender: self, PeerId: "peer", Payee: thief},
		"a pool":  &registrypb.MsgRegister{Sender: self, PeerId: "peer", Pool: thief},
		"earning": &registrypb.MsgRegister{Sender: self, PeerId: "peer", Earns: true,
			Roles: []registrypb.Role{registrypb.Role_ROLE_WORKER}},
	} {
		if _, err := machine.Submit(n.ctx, m); err == nil {
			t.Errorf("a machine registers with %s", name)
		}
	}
	// fees: in one transaction, in many
	spend := func(fee uint64) error {
		number, sequence, err := machine.Sequence(n.ctx)
		n.must(err)
		tx, err := transaction.Sign(n.ctx, key("machine"), transaction.Account{ChainID: "test", Number: number,
			Sequence: sequence, Fee: transaction.Fee{Gas: 400_000, Amount: adapter.Coins(fee), Payer: owner.Address()}}, 0,
			&registrypb.MsgUpdateAddresses{Sender: self, PeerId: "peer"})
		n.must(err)
		r, err := n.validator.Client().BroadcastTxCommit(n.ctx, tx)
		n.must(err)
		if r.CheckTx.Code != 0 || r.TxResult.Code != 0 {
			return fmt.Errorf("%s %s", r.CheckTx.Log, r.TxResult.Log)
		}
		return nil
	}
	had := n.holds("owner")
	if err := spend(dailyFees + 1); err == nil {
		t.Error("more than the fees of a day are paid at once")
	}
	for range 5 {
		_ = spend(dailyFees * 2 / 5)
	}
	if spent := had - n.holds("owner"); spent == 0 || spent > dailyFees {
		t.Errorf("a thief spent %d uzen for fees, at most %d a day", spent, dailyFees)
	}
	// after revocation, once more as much at most
	n.must(owner.Registry.Revoke(n.ctx, self))
	had = n.holds("owner")
	for range 3 {
		if err := spend(10_000); err == nil {
			t.Error("a revoked machine spends fees for what it may not send")
		}
	}
	if b := n.holds("owner"); b != had {
		t.Errorf("%d uzen after the revocation", had-b)
	}
	p, err := owner.Registry.Participant(n.ctx, self)
	n.must(err)
	if p.Stake != stake || p.Leaving != stake || p.Slashed != 0 || registry.Pays(p, 1) != owner.Address() {
		t.Errorf("the stake after the revocation: %+v", p)
	}
}
