package bridged

import (
	"context"
	"errors"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	clienttypes "github.com/cosmos/ibc-go/v11/modules/core/02-client/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/bridge"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/sim/random/draw"
	"github.com/starling-network/starling/sim/random/orders"
)

// backlog is how many packets wait for the relay at most, which needs some blocks for each.
const backlog = 8

// say lets an account say something, unless it waits for a block.
func (p *play) say(s *shore) {
	key := account(p.Intn(accounts))
	me := key.Address()
	if s.waiting[me] {
		return
	}
	c := client.NewWithSubmitter(s.Connection, key, func(ctx context.Context,
		msgs ...sdk.Msg) (r transaction.Result, err error) {
		tx, err := s.send(ctx, key, msgs)
		if err != nil {
			return r, err
		}
		s.waiting[me], s.who[string(tx)] = true, me
		return r, nil
	})
	err := p.message(s, c)
	if _, refused := errors.AsType[*transaction.Error](err); refused {
		p.sent["not taken"]++
		err = nil
	}
	p.must(err)
}

// holding draws some of the coins of an account.
func (p *play) holding(s *shore, address string) sdk.Coin {
	r, err := banktypes.NewQueryClient(s.Queries).AllBalances(p.ctx, &banktypes.QueryAllBalancesRequest{Address: address})
	p.must(err)
	if len(r.Balances) == 0 {
		return adapter.Coins(1)[0]
	}
	c := draw.Pick(p.Source, r.Balances)
	most := c.Amount.Int64()
	if p.Often(3) {
		most *= 2 // more than it has
	}
	return sdk.NewInt64Coin(c.Denom, 1+p.Int63n(most)>>p.Intn(20))
}

func (p *play) message(s *shore, c *client.Client) error {
	me := c.Address()
	to := account(p.Intn(accounts)).Address()
	amount := p.holding(s, me)
	own := coin.Coin{}
	voucher := coin.Coin{Denom: bridge.End{Channel: s.channel}.Voucher(s.other.coin.Denom), Symbol: s.other.coin.Symbol,
		Exponent: 6}
	in := draw.Pick(p.Source, []coin.Coin{own, own, s.coin, voucher})
	some := 1 + p.Below(50_000_000)
	validator := sdk.ValAddress(draw.Pick(p.Source, s.Validators).Operator.PubKey().Address()).String()
	var err error
	switch p.Intn(18) {
	case 0, 1:
		_, err = c.Submit(p.ctx, &banktypes.MsgSend{FromAddress: me, ToAddress: to, Amount: sdk.NewCoins(amount)})
	case 2:
		_, err = c.Submit(p.ctx, &banktypes.MsgMultiSend{Inputs: []banktypes.Input{{Address: me,
			Coins: sdk.NewCoins(amount)}}, Outputs: []banktypes.Output{{Address: to, Coins: sdk.NewCoins(amount)}}})
	case 3: // by hand to the account of the bridge
		_, err = c.Submit(p.ctx, &banktypes.MsgSend{FromAddress: me, ToAddress: s.escrow(), Amount: sdk.NewCoins(amount)})
	case 4:
		_, err = c.Submit(p.ctx, &distrtypes.MsgFundCommunityPool{Depositor: me, Amount: adapter.Coins(some)})
	case 5: // too little for a change of the validators' power
		_, err = c.Submit(p.ctx, &stakingtypes.MsgDelegate{DelegatorAddress: me, ValidatorAddress: validator,
			Amount: adapter.Coins(1 + p.Below(100))[0]})
	case 6:
		_, err = c.Submit(p.ctx, &distrtypes.MsgWithdrawDelegatorReward{DelegatorAddress: me, ValidatorAddress: validator})
	case 7:
		err = c.Market.Order(p.ctx, orders.Next(p.Source, in, some, s.Height), nil)
	case 8:
		all, failed := s.Queries.Market.Orders(p.ctx)
		p.must(failed)
		if len(all) > 0 {
			err = c.Market.CancelOrder(p.ctx, draw.Pick(p.Source, all).ID)
		}
	case 9:
		err = c.Registry.Register(p.ctx, registry.Participant{Roles: []crew.Role{crew.Worker}, PeerID: "peer-" + me,
			Addrs: []string{"/ip4/127.0.0.1/tcp/4001"}, Device: "test", Stake: some})
	case 10:
		err = c.Stakes.Add(p.ctx, "", draw.Pick(p.Source, []coin.Coin{s.coin, voucher}), some)
	case 11:
		err = c.Registry.Unstake(p.ctx, some)
	default:
		if p.open() < backlog {
			err = p.transfer(s, c, amount, to)
		}
	}
	return err
}

// transfer sends coins over the bridge, now and then to a wrong address or with little time.
func (p *play) transfer(s *shore, c *client.Client, amount sdk.Coin, to string) error {
	within := time.Hour
	if p.Often(20) {
		within = time.Duration(p.UpTo(3, 30)) * time.Second
	}
	switch {
	case p.Often(5):
		to = "nobody"
	case p.Often(5):
		to = wallet.ModuleAddress("distribution")
	case p.Often(5):
		to = s.other.escrow()
	}
	until := start.Add(p.now + within)
	_, err := c.Submit(p.ctx, transfertypes.NewMsgTransfer(transfertypes.PortID, s.channel, amount, c.Address(), to,
		clienttypes.ZeroHeight(), uint64(until.UnixNano()), ""))
	return err
}
