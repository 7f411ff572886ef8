package sim

import (
	"fmt"
	"testing"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	cmttypes "github.com/cometbft/cometbft/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/app/room"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/sim/ledger"
)

// priced is a chain whose validator asks for the price of the chain, as those do that the command line starts.
func priced(t *testing.T, names ...string) *state {
	s := newState(t, unchangedGenesis, names...)
	s.Config.Governed = true
	s.App = must(app.New(log.NewNopLogger(), s.DB, s.Config))(t)
	s.next()
	return s
}

// pays signs the next transaction of an account, or one so many after it, with a limit of gas and a fee.
func (s *state) pays(name string, after, gas, fee uint64, msgs ...sdk.Msg) []byte {
	s.t.Helper()
	k := keyOf(name)
	number, sequence, err := client.New(s.Connection, k).Sequence(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	f := transaction.Fee{Gas: gas}
	if fee > 0 {
		f.Amount = adapter.Coins(fee)
	}
	return must(transaction.Sign(s.t.Context(), k,
		transaction.Account{ChainID: s.ChainID, Number: number, Sequence: sequence + after, Fee: f}, 0, msgs...))(s.t)
}

// Accounts with a few coins and no stake have no free transactions: filling blocks from such accounts costs fees.
func TestStrangersWithoutAStakePay(t *testing.T) {
	s := priced(t, "rich", "spammer")
	s.takes(s.pays("rich", 0, 200_000, 2_000,
		&banktypes.MsgSend{FromAddress: keyOf("rich").Address(), ToAddress: keyOf("poor").Address(),
			Amount: adapter.Coins(1)}))
	register := func(name string, stake uint64) sdk.Msg {
		return &registrypb.MsgRegister{Sender: keyOf(name).Address(), PeerId: "peer",
			Roles: []registrypb.Role{registrypb.Role(crew.Worker)}, Stake: stake}
	}
	for what, tx := range map[string][]byte{
		"a heartbeat without a tier": s.pays("poor", 0, 200_000, 0,
			&registrypb.MsgHeartbeat{Sender: keyOf("poor").Address()}),
		"a registration without a stake": s.pays("poor", 0, 200_000, 0, register("poor", 0)),
		"a stake that is not there":      s.pays("poor", 0, 200_000, 0, register("poor", 1_000_000)),
		"an offer": s.pays("spammer", 0, 200_000, 0,
			&marketpb.MsgOffer{Sender: keyOf("spammer").Address(), Role: registrypb.Role(crew.Worker), Price: 1, Slots: 1}),
		"an offer for less than the price": s.pays("spammer", 0, 200_000, 1_999,
			&marketpb.MsgOffer{Sender: keyOf("spammer").Address(), Role: registrypb.Role(crew.Worker), Price: 1, Slots: 1}),
	} {
		if r := must(s.App.CheckTx(&abci.RequestCheckTx{Tx: tx}))(t); r.Code != sdkerrors.ErrInsufficientFee.ABCICode() {
			t.Errorf("%s: %d %s", what, r.Code, r.Log)
		}
	}
	s.takes(s.pays("spammer", 0, 400_000, 0, register("spammer", 1_000_000)))
	if cost := 1000 * room.BlockGas / 1_000_000 * market.GasPrice; cost < 1000*1_000_000 {
		t.Errorf("a thousand full blocks cost %d uzen", cost)
	}
}

// A proposer that fills a block with unpaid transactions, or beyond its gas, has it refused; one that keeps to the
// rules leaves the rest for another block, in the order of each account.
func TestBlockOverItsFreeShareIsRefused(t *testing.T) {
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprint("account ", i))
	}
	s := newState(t, unchangedGenesis, names...)
	beat := func(name string) sdk.Msg {
		return &registrypb.MsgUpdateAddresses{Sender: keyOf(name).Address(), PeerId: "peer"}
	}
	var free, paid [][]byte
	for i, name := range names {
		free = append(free, s.pays(name, 0, 1_000_000, 0, beat(name)))
		if i < 20 {
			paid = append(paid, s.pays(names[0], uint64(i), 20_000_000, 200_000, beat(names[0])))
		}
	}
	for name, c := range map[string]struct {
		txs [][]byte
		fit int
	}{
		"free":    {free, room.BlockGas / 8 / 1_000_000},
		"paid":    {paid, room.BlockGas / 20_000_000},
		"no gas":  {[][]byte{s.pays(names[0], 0, room.MaxGas+1, 1<<40, beat(names[0]))}, 0},
		"no code": {[][]byte{[]byte("no transaction")}, 0},
	} {
		p := must(s.App.PrepareProposal(&abci.RequestPrepareProposal{
			MaxTxBytes: 11 << 20, Txs: c.txs, LocalLastCommit: s.Commit, Height: s.Height + 1, Time: s.Start.Add(s.now),
		}))(t)
		if got := len(p.Txs) - 1; got != c.fit {
			t.Errorf("%s: %d of %d are proposed, not %d", name, got, len(c.txs), c.fit)
		}
		votes := func(txs [][]byte) abci.ResponseProcessProposal_ProposalStatus {
			return must(s.App.ProcessProposal(&abci.RequestProcessProposal{
				Txs: txs, ProposedLastCommit: ledger.Plain(s.Commit), Hash: cmttypes.ToTxs(txs).Hash(), Height: s.Height + 1,
				Time: s.Start.Add(s.now),
			}))(t).Status
		}
		if votes(p.Txs) != abci.ResponseProcessProposal_ACCEPT {
			t.Errorf("%s: what is proposed is refused", name)
		}
		if more := append([][]byte{p.Txs[0]}, c.txs...); votes(more) != abci.ResponseProcessProposal_REJECT {
			t.Errorf("%s: a block of all of them is voted for", name)
		}
	}
}

// inZEN is an amount of uzen as people read it.
func inZEN(uzen uint64) string {
	part := fmt.Sprintf("%06d", uzen%1_000_000)
	for len(part) > 2 && part[len(part)-1] == '0' {
		part = part[:len(part)-1]
	}
	return fmt.Sprintf("%d.%s ZEN", uzen/1_000_000, part)
}
