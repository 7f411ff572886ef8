// Package bridge carries coins between two networks by IBC: it opens a channel for transfers (ICS 20) between them,
// sends coins through it, and relays packets, acknowledgements and timeouts. It holds no coins and keeps no state: all
// that it must know is on the two chains, each of which checks the proofs of the other. So any account can relay,
// several may at a time, and a relay that stops only delays.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	rpcclient "github.com/cometbft/cometbft/rpc/client"
	cmttypes "github.com/cometbft/cometbft/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	clienttypes "github.com/cosmos/ibc-go/v11/modules/core/02-client/types"
	connectiontypes "github.com/cosmos/ibc-go/v11/modules/core/03-connection/types"
	channeltypes "github.com/cosmos/ibc-go/v11/modules/core/04-channel/types"
	commitmenttypes "github.com/cosmos/ibc-go/v11/modules/core/23-commitment/types"
	host "github.com/cosmos/ibc-go/v11/modules/core/24-host"
	ibcexported "github.com/cosmos/ibc-go/v11/modules/core/exported"
	tendermint "github.com/cosmos/ibc-go/v11/modules/light-clients/07-tendermint"

	"github.com/starling-network/starling/chain/wire"
	_ "github.com/starling-network/starling/chain/wire/ibc" // its messages
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
)

// Periods of the light clients. The chain keeps stakes for three weeks after they are withdrawn, so that headers can be
// trusted for two.
const (
	trusting  = 14 * 24 * time.Hour
	unbonding = 21 * 24 * time.Hour
	drift     = 10 * time.Second
)

// ErrNoEvent is returned if a transaction lacks an event that it must have.
var ErrNoEvent = errors.New("bridge: the transaction lacks an event")

// Shore is one of two networks, seen by the account that relays, with its end of the bridge.
type Shore struct {
	Account *client.Client
	RPC     rpcclient.Client // of a validator that keeps an index of transactions
	End     End
}

// End is the identifiers of a bridge on one network.
type End struct {
	ChainID    string `json:"chain_id"`
	Light      string `json:"client"` // light client of the other network
	Connection string `json:"connection"`
	Channel    string `json:"channel"`
}

// Voucher is the denomination on this network of a coin that comes from the other one by the bridge.
func (e End) Voucher(denom string) string {
	return transfertypes.NewDenom(denom, transfertypes.NewHop(transfertypes.PortID, e.Channel)).IBCDenom()
}

// do submits a message and returns an attribute of an event of its transaction.
func (s *Shore) do(ctx context.Context, msg sdk.Msg, event, attribute string) (string, error) {
	r, err := s.Account.Submit(ctx, msg)
	if err != nil {
		return "", err
	}
	return said(r, event, attribute)
}

func said(r transaction.Result, event, attribute string) (string, error) {
	for _, e := range r.Events {
		for _, a := range e.Attributes {
			if e.Type == event && a.Key == attribute {
				return a.Value, nil
			}
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNoEvent, event)
}

// height is that of the latest block.
func (s *Shore) height(ctx context.Context) (int64, time.Time, error) {
	r, err := s.RPC.Status(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	s.End.ChainID = r.NodeInfo.Network
	return r.SyncInfo.LatestBlockHeight, r.SyncInfo.LatestBlockTime, nil
}

// beyond waits for a block after a height.
func (s *Shore) beyond(ctx context.Context, height int64) error {
	for {
		now, _, err := s.height(ctx)
		if err != nil || now > height {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Shore) at(height uint64) clienttypes.Height {
	return clienttypes.NewHeight(clienttypes.ParseChainID(s.End.ChainID), height)
}

// header is a signed header of this network for the light client of the other.
func (s *Shore) header(ctx context.Context, height int64) (*tendermint.Header, error) {
	commit, err := s.RPC.Commit(ctx, &height)
	if err != nil {
		return nil, err
	}
	var all []*cmttypes.Validator
	for page, most := 1, 100; ; page++ {
		r, err := s.RPC.Validators(ctx, &height, &page, &most)
		if err != nil {
			return nil, err
		}
		if all = append(all, r.Validators...); len(all) >= r.Total || len(r.Validators) == 0 {
			break
		}
	}
	set, err := cmttypes.ValidatorSetFromExistingValidators(all)
	if err != nil {
		return nil, err
	}
	h := &tendermint.Header{SignedHeader: commit.ToProto()}
	h.ValidatorSet, err = set.ToProto()
	return h, err
}

// follow makes the light client that follows the other network.
func (s *Shore) follow(ctx context.Context, other *Shore) error {
	height, _, err := other.height(ctx)
	if err != nil {
		return err
	}
	h, err := other.header(ctx, height)
	if err != nil {
		return err
	}
	state := tendermint.NewClientState(other.End.ChainID, tendermint.DefaultTrustLevel, trusting, unbonding, drift,
		other.at(h.GetHeight().GetRevisionHeight()), commitmenttypes.GetSDKSpecs(),
		[]string{"upgrade", "upgradedIBCState"})
	msg, err := clienttypes.NewMsgCreateClient(state, h.ConsensusState(), s.Account.Address())
	if err != nil {
		return err
	}
	s.End.Light, err = s.do(ctx, msg, clienttypes.EventTypeCreateClient, clienttypes.AttributeKeyClientID)
	return err
}

// trusted is the height of the other network up to which the light client knows it.
func (s *Shore) trusted(ctx context.Context) (uint64, error) {
	r, err := clienttypes.NewQueryClient(s.Account).ClientState(ctx,
		&clienttypes.QueryClientStateRequest{ClientId: s.End.Light})
	if err != nil {
		return 0, err
	}
	e, err := wire.Shared()
	if err != nil {
		return 0, err
	}
	var state ibcexported.ClientState
	if err := e.Registry.UnpackAny(r.ClientState, &state); err != nil {
		return 0, err
	}
	light, ok := state.(*tendermint.ClientState)
	if !ok {
		return 0, fmt.Errorf("bridge: client %s follows no chain of CometBFT", s.End.Light)
	}
	return light.LatestHeight.GetRevisionHeight(), nil
}

// learn updates the light client to a block of the other network with its current state, and returns the proof of the
// value at a key, or of its absence.
func (s *Shore) learn(ctx context.Context, other *Shore, key []byte) (proof []byte, at clienttypes.Height, err error) {
	info, err := other.RPC.ABCIInfo(ctx) // a block may be known before it is executed
	if err != nil {
		return nil, at, err
	}
	stands := info.Response.LastBlockHeight
	r, err := other.RPC.ABCIQueryWithOptions(ctx, "store/"+ibcexported.StoreKey+"/key", key,
		rpcclient.ABCIQueryOptions{Height: stands, Prove: true})
	if err == nil && r.Response.IsErr() {
		err = fmt.Errorf("bridge: %s gives no proof at height %d: %s", other.End.ChainID, stands, r.Response.Log)
	}
	if err != nil {
		return nil, at, err
	}
	merkle, err := commitmenttypes.ConvertProofs(r.Response.ProofOps)
	if err != nil {
		return nil, at, err
	}
	if proof, err = merkle.Marshal(); err != nil {
		return nil, at, err
	}
	if err := other.beyond(ctx, stands); err != nil { // the next header has the root of this state
		return nil, at, err
	}
	return proof, other.at(uint64(stands) + 1), s.update(ctx, other, stands+1)
}

// update lets the light client know a block of the other network, unless it knows a later one.
func (s *Shore) update(ctx context.Context, other *Shore, height int64) error {
	trusted, err := s.trusted(ctx)
	if err != nil || trusted == uint64(height) {
		return err
	}
	h, err := other.header(ctx, height)
	if err != nil {
		return err
	}
	before, err := other.header(ctx, int64(trusted)+1)
	if err != nil {
		return err
	}
	h.TrustedHeight, h.TrustedValidators = other.at(trusted), before.ValidatorSet
	msg, err := clienttypes.NewMsgUpdateClient(s.End.Light, h, s.Account.Address())
	if err != nil {
		return err
	}
	_, err = s.do(ctx, msg, clienttypes.EventTypeUpdateClient, clienttypes.AttributeKeyClientID)
	return err
}

// Open opens a channel for transfers between two networks, with a light client of each on the other.
func Open(ctx context.Context, a, b *Shore) error {
	if _, _, err := a.height(ctx); err != nil {
		return err
	}
	if err := errors.Join(a.follow(ctx, b), b.follow(ctx, a)); err != nil {
		return err
	}
	if err := connect(ctx, a, b); err != nil {
		return fmt.Errorf("bridge: the connection: %w", err)
	}
	if err := channel(ctx, a, b); err != nil {
		return fmt.Errorf("bridge: the channel: %w", err)
	}
	return nil
}

func connect(ctx context.Context, a, b *Shore) (err error) {
	prefix, versions := commitmenttypes.NewMerklePrefix([]byte(ibcexported.StoreKey)),
		connectiontypes.GetCompatibleVersions()
	const id = connectiontypes.AttributeKeyConnectionID
	if a.End.Connection, err = a.do(ctx, connectiontypes.NewMsgConnectionOpenInit(a.End.Light, b.End.Light, prefix,
		versions[0], 0, a.Account.Address()), connectiontypes.EventTypeConnectionOpenInit, id); err != nil {
		return err
	}
	proof, at, err := b.learn(ctx, a, host.ConnectionKey(a.End.Connection))
	if err != nil {
		return err
	}
	if b.End.Connection, err = b.do(ctx, connectiontypes.NewMsgConnectionOpenTry(b.End.Light, a.End.Connection,
		a.End.Light, prefix, versions, 0, proof, at, b.Account.Address()), connectiontypes.EventTypeConnectionOpenTry,
		id); err != nil {
		return err
	}
	if proof, at, err = a.learn(ctx, b, host.ConnectionKey(b.End.Connection)); err != nil {
		return err
	}
	if _, err = a.do(ctx, connectiontypes.NewMsgConnectionOpenAck(a.End.Connection, b.End.Connection, proof, at,
		versions[0], a.Account.Address()), connectiontypes.EventTypeConnectionOpenAck, id); err != nil {
		return err
	}
	if proof, at, err = b.learn(ctx, a, host.ConnectionKey(a.End.Connection)); err != nil {
		return err
	}
	_, err = b.do(ctx, connectiontypes.NewMsgConnectionOpenConfirm(b.End.Connection, proof, at, b.Account.Address()),
		connectiontypes.EventTypeConnectionOpenConfirm, id)
	return err
}

func channel(ctx context.Context, a, b *Shore) (err error) {
	const port, version, order, id = transfertypes.PortID, transfertypes.V1, channeltypes.UNORDERED,
		channeltypes.AttributeKeyChannelID
	if a.End.Channel, err = a.do(ctx, channeltypes.NewMsgChannelOpenInit(port, version, order,
		[]string{a.End.Connection}, port, a.Account.Address()), channeltypes.EventTypeChannelOpenInit, id); err != nil {
		return err
	}
	proof, at, err := b.learn(ctx, a, host.ChannelKey(port, a.End.Channel))
	if err != nil {
		return err
	}
	if b.End.Channel, err = b.do(ctx, channeltypes.NewMsgChannelOpenTry(port, version, order, []string{b.End.Connection},
		port, a.End.Channel, version, proof, at, b.Account.Address()), channeltypes.EventTypeChannelOpenTry,
		id); err != nil {
		return err
	}
	if proof, at, err = a.learn(ctx, b, host.ChannelKey(port, b.End.Channel)); err != nil {
		return err
	}
	if _, err = a.do(ctx, channeltypes.NewMsgChannelOpenAck(port, a.End.Channel, b.End.Channel, version, proof, at,
		a.Account.Address()), channeltypes.EventTypeChannelOpenAck, id); err != nil {
		return err
	}
	if proof, at, err = b.learn(ctx, a, host.ChannelKey(port, a.End.Channel)); err != nil {
		return err
	}
	_, err = b.do(ctx, channeltypes.NewMsgChannelOpenConfirm(port, b.End.Channel, proof, at, b.Account.Address()),
		channeltypes.EventTypeChannelOpenConfirm, id)
	return err
}

// Send sends coins of the account to an account of the other network. If they are not relayed in time, they come back.
func (s *Shore) Send(ctx context.Context, to string, coin sdk.Coin, within time.Duration) (transaction.Result, error) {
	_, now, err := s.height(ctx)
	if err != nil {
		return transaction.Result{}, err
	}
	return s.Account.Submit(ctx, transfertypes.NewMsgTransfer(transfertypes.PortID, s.End.Channel, coin,
		s.Account.Address(), to, clienttypes.ZeroHeight(), uint64(now.Add(within).UnixNano()), ""))
}

// Find completes both ends of a bridge by the channel on the first network.
func Find(ctx context.Context, a, b *Shore, channel string) error {
	if _, _, err := a.height(ctx); err != nil {
		return err
	}
	if _, _, err := b.height(ctx); err != nil {
		return err
	}
	r, err := channeltypes.NewQueryClient(a.Account).Channel(ctx,
		&channeltypes.QueryChannelRequest{PortId: transfertypes.PortID, ChannelId: channel})
	if err != nil {
		return fmt.Errorf("bridge: %s has no channel %s for transfers: %w", a.End.ChainID, channel, err)
	}
	if len(r.Channel.ConnectionHops) != 1 {
		return fmt.Errorf("bridge: %s goes over %d connections, wanted one", channel, len(r.Channel.ConnectionHops))
	}
	a.End.Channel, a.End.Connection = channel, r.Channel.ConnectionHops[0]
	b.End.Channel = r.Channel.Counterparty.ChannelId
	c, err := connectiontypes.NewQueryClient(a.Account).Connection(ctx,
		&connectiontypes.QueryConnectionRequest{ConnectionId: a.End.Connection})
	if err != nil {
		return err
	}
	a.End.Light = c.Connection.ClientId
	b.End.Light, b.End.Connection = c.Connection.Counterparty.ClientId, c.Connection.Counterparty.ConnectionId
	back, err := channeltypes.NewQueryClient(b.Account).Channel(ctx,
		&channeltypes.QueryChannelRequest{PortId: transfertypes.PortID, ChannelId: b.End.Channel})
	if err != nil || back.Channel.Counterparty.ChannelId != channel {
		return errors.Join(fmt.Errorf("bridge: %s of %s does not lead to %s", channel, a.End.ChainID, b.End.ChainID), err)
	}
	return nil
}
