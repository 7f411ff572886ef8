// Package groups draws messages of committees: of hosts, and of members that join and leave. Their rounds are contests,
// whose messages package contests draws.
package groups

import (
	"context"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	xarena "github.com/starling-network/starling/chain/x/arena"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/committee"
	"github.com/starling-network/starling/sim/random/draw"
)

const url = "http://127.0.0.1/"

// Next is any message of a committee and its sender; "": there is none. The account of the client hosts, with an amount
// of a coin, and registered participants are members.
func Next(ctx context.Context, d draw.Source, c *client.Client, in coin.Coin, amount uint64) (string, sdk.Msg, error) {
	if d.Often(10) {
		return c.Address(), convene(d, c.Address(), in, amount), nil
	}
	all, err := c.Arena.Committees(ctx)
	if err != nil || len(all) == 0 {
		return "", nil, err
	}
	g := draw.Pick(d, all)
	if g.Phase == committee.Idle && g.Members > 0 && d.Often(60) {
		model, set := canon.Sum("model", []byte(fmt.Sprint(g.Begun))), canon.Sum("set")
		return g.Host, &arenapb.MsgBegin{Sender: g.Host, Committee: g.ID, Model: model[:], Url: url, Set: set[:]}, nil
	}
	who, err := c.Registry.Participants(ctx)
	if err != nil || len(who) == 0 {
		return "", nil, err
	}
	member := draw.Pick(d, who).ID
	if d.Often(20) {
		return member, &arenapb.MsgLeave{Sender: member, Committee: g.ID}, nil
	}
	return member, &arenapb.MsgJoin{Sender: member, Committee: g.ID, Stake: d.Below(2 * g.Terms.Stake)}, nil
}

func convene(d draw.Source, host string, in coin.Coin, amount uint64) sdk.Msg {
	blocks := func() uint32 { return uint32(d.UpTo(4, 9)) } // now and then too few
	rounds := uint32(d.UpTo(1, 4))
	return xarena.FromCommittee(host, committee.Terms{Rounds: rounds, Pay: amount / 10 / uint64(rounds),
		Drawn: uint32(d.UpTo(1, 3)), Stake: 1_000_000, Window: uint32(d.UpTo(1, 4)), Members: 4, Job: canon.Sum("job"),
		Round: arena.Terms{Title: fmt.Sprintf("%x", d.Uint64()), Denom: in.Denom, Bond: amount / 20, Fee: amount / 500,
			Panel: uint32(d.UpTo(2, 3)) | 1, Examples: 100, Vocab: 10, Length: 10, MaxBytes: 1000, Entering: blocks(),
			Revealing: blocks(), Judging: blocks(), Tokenizer: canon.Sum("tokenizer"), About: url,
			Adjusted: rounds > 1}})
}
