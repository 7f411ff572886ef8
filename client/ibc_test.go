package client_test

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	clienttypes "github.com/cosmos/ibc-go/v11/modules/core/02-client/types"
	channeltypes "github.com/cosmos/ibc-go/v11/modules/core/04-channel/types"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client/bridge"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// banked is a network whose validator keeps an index of transactions, with accounts that have ZEN and some of a coin.
func banked(t *testing.T, chainID string, c coin.Registered, grains uint64, names ...string) *network {
	t.Helper()
	n := startChain(t, chainID, names...)
	n.validator.Stop()
	n.config.Home, n.config.RPC = t.TempDir(), porttest.Address(t)
	for _, name := range names {
		n.config.Accounts = append(n.config.Accounts,
			chain.Funded{Address: key(name).Address(), Amount: grains, Coin: c})
	}
	n.open(names...)
	return n
}

func shoreOf(n *network, name string) *bridge.Shore {
	return &bridge.Shore{Account: n.clients[name], RPC: n.validator.Client()}
}

// holds checks the balance of an account in a denomination.
func (n *network) holdsOf(name, denom string, want int64) {
	n.t.Helper()
	r, err := banktypes.NewQueryClient(n.clients[name]).Balance(n.ctx,
		&banktypes.QueryBalanceRequest{Address: key(name).Address(), Denom: denom})
	n.must(err)
	if r.Balance.Amount.Int64() != want {
		n.t.Errorf("%s: %s has %s, want %d", n.config.ChainID, name, r.Balance, want)
	}
}

// steps relays until nothing waits.
func steps(n *network, a, b *bridge.Shore) {
	n.t.Helper()
	for moved := 1; moved > 0; {
		forth, err := bridge.Relay(n.ctx, a, b)
		n.must(err)
		back, err := bridge.Relay(n.ctx, b, a)
		n.must(err)
		moved = forth + back
	}
}

// A stablecoin of another chain comes by IBC, pays for work, and goes back. A packet that was forged or is relayed
// again is refused; one that is not relayed in time returns to its sender; and any account relays.
func TestAStablecoinComesByIBC(t *testing.T) {
	t.Parallel()
	issued := coin.Registered{Coin: coin.Coin{Denom: "base/usdc", Symbol: "usdc", Exponent: 6}, Waiting: 1000}
	voucher := bridge.End{Channel: "channel-0"}.Voucher(issued.Denom)
	here := coin.Registered{Coin: coin.Coin{Denom: voucher, Symbol: "usdc", Exponent: 6}, Waiting: 1000}
	a := banked(t, "alpha-1", here, 0, "relayer", "stranger", "consumer", "w0", "w1", "v0")
	b := banked(t, "beta-1", issued, 100_000_000, "relayer", "stranger", "consumer")
	left, right := shoreOf(a, "relayer"), shoreOf(b, "relayer")
	a.must(bridge.Open(a.ctx, left, right))
	if left.End.Channel != "channel-0" || left.End.Voucher(issued.Denom) != voucher {
		t.Fatalf("%+v", left.End)
	}

	consumer := shoreOf(b, "consumer")
	consumer.End = right.End
	sent, err := consumer.Send(b.ctx, key("consumer").Address(), sdk.NewInt64Coin(issued.Denom, 60_000_000), time.Hour)
	b.must(err)
	forge(a, right, left, sent.Events)
	steps(a, left, right)
	a.holdsOf("consumer", voucher, 60_000_000)
	b.holdsOf("consumer", issued.Denom, 40_000_000)

	for name, role := range map[string]crew.Role{"w0": crew.Worker, "w1": crew.Worker, "v0": crew.Verifier} {
		m := a.clients[name]
		_, err := a.clients["consumer"].Coins.Send(a.ctx, m.Address(), here.Coin, 15_000_000, "")
		a.must(err)
		a.must(m.Registry.Register(a.ctx, registry.Participant{Roles: []crew.Role{role}, PeerID: "peer-" + name,
			Addrs: []string{"/ip4/127.0.0.1/tcp/4001"}, Device: "test", Stake: stake}))
		a.must(m.Market.OfferIn(a.ctx, marketpb.MsgOffer{Role: registrypb.Role(role), Slots: 1, Foreign: true,
			Asks: []marketpb.Ask{{Denom: voucher, Price: 500}}}))
		a.must(m.Stakes.Add(a.ctx, "", here.Coin, 14_000_000))
	}
	o := order("job")
	o.Coin = here.Coin
	a.must(a.clients["consumer"].Market.Order(a.ctx, o, nil))
	a.finish("w0", "w1", "v0")
	a.balanced(a.clients["consumer"])
	if has := a.has("w0", here.Coin); has <= 1_000_000 {
		t.Errorf("the worker has %s", here.Text(has))
	}

	// The worker sends its pay to the other chain; another account relays it.
	stranger, other := shoreOf(a, "stranger"), shoreOf(b, "stranger")
	a.must(bridge.Find(a.ctx, stranger, other, "channel-0"))
	worker := shoreOf(a, "w0")
	worker.End = stranger.End
	_, err = worker.Send(a.ctx, key("w0").Address(), sdk.NewInt64Coin(voucher, 1_000_500), time.Hour)
	a.must(err)
	steps(a, stranger, other)
	r, err := banktypes.NewQueryClient(b.clients["relayer"]).Balance(b.ctx,
		&banktypes.QueryBalanceRequest{Address: key("w0").Address(), Denom: issued.Denom})
	b.must(err)
	if r.Balance.Amount.Int64() != 1_000_500 {
		t.Errorf("on the other chain it has %s", r.Balance)
	}

	late := shoreOf(a, "w1")
	late.End = left.End
	blocked(a, late, stranger, other, sdk.NewInt64Coin(voucher, 1_000))
	steps(a, stranger, other)
	before := a.has("w1", here.Coin)
	_, err = late.Send(a.ctx, key("w1").Address(), sdk.NewInt64Coin(voucher, 50), 300*time.Millisecond)
	a.must(err)
	for until := time.Now().Add(time.Second); time.Now().Before(until); {
		b.height(b.clients["relayer"])
	}
	steps(a, left, right)
	if has := a.has("w1", here.Coin); has != before {
		t.Errorf("what was too late: %d came back", int64(has)-int64(before))
	}
	a.balanced(a.clients["consumer"])
}

// lacking is a validator whose index of transactions lacks a packet.
type lacking struct {
	rpcclient.Client
	number string
}

func (l lacking) TxSearch(ctx context.Context, search string, prove bool, page, most *int,
	order string) (*coretypes.ResultTxSearch, error) {
	if strings.Contains(search, channeltypes.AttributeKeySequence+"='"+l.number+"'") {
		return new(coretypes.ResultTxSearch), nil
	}
	return l.Client.TxSearch(ctx, search, prove, page, most, order)
}

// blocked sends two packets, of which the relay cannot read the first: the second arrives all the same.
func blocked(n *network, sender, from, to *bridge.Shore, amount sdk.Coin) {
	n.t.Helper()
	var first string
	for range 2 {
		sent, err := sender.Send(n.ctx, sender.Account.Address(), amount, time.Hour)
		n.must(err)
		if first == "" {
			first = sentPacket(sent.Events)[channeltypes.AttributeKeySequence]
		}
	}
	blind := *from
	blind.RPC = lacking{from.RPC, first}
	if moved, err := bridge.Relay(n.ctx, &blind, to); moved != 1 || !errors.Is(err, bridge.ErrNotFound) {
		n.t.Errorf("moved %d packets, wanted the one that can be read: %v", moved, err)
	}
}

// sentPacket is the attributes of a packet that was sent.
func sentPacket(events []abci.Event) map[string]string {
	about := map[string]string{}
	for _, e := range events {
		for _, a := range e.Attributes {
			if e.Type == channeltypes.EventTypeSendPacket {
				about[a.Key] = a.Value
			}
		}
	}
	return about
}

// forge tries to relay a packet with another amount, and the packet itself twice.
func forge(n *network, from, to *bridge.Shore, events []abci.Event) {
	n.t.Helper()
	about := sentPacket(events)
	sequence, err := strconv.ParseUint(about[channeltypes.AttributeKeySequence], 10, 64)
	n.must(err)
	until, err := strconv.ParseUint(about[channeltypes.AttributeKeyTimeoutTimestamp], 10, 64)
	n.must(err)
	data, err := hex.DecodeString(about[channeltypes.AttributeKeyDataHex])
	n.must(err)
	packet := channeltypes.NewPacket(data, sequence, transfertypes.PortID, from.End.Channel, transfertypes.PortID,
		to.End.Channel, clienttypes.ZeroHeight(), until)
	forged := packet
	forged.Data = transfertypes.NewFungibleTokenPacketData("base/usdc", "9000000000", key("consumer").Address(),
		key("stranger").Address(), "").GetBytes()
	ctx, cancel := context.WithTimeout(n.ctx, time.Minute)
	defer cancel()
	if err := bridge.Deliver(ctx, from, to, forged); err == nil {
		n.t.Error("a forged packet is taken")
	}
	if err := bridge.Deliver(ctx, from, to, packet); err != nil {
		n.t.Error(err)
	}
	stranger := n.clients["stranger"]
	before, err := stranger.Coins.Balance(ctx, stranger.Address())
	n.must(err)
	if err := bridge.Deliver(ctx, from, to, packet); err == nil {
		n.holdsOf("consumer", to.End.Voucher("base/usdc"), 60_000_000) // a second delivery changes nothing
	}
	if after, _ := stranger.Coins.Balance(ctx, stranger.Address()); after != before {
		n.t.Errorf("the stranger has %d, and had %d", after, before)
	}
}
