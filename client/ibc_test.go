package client_test

import (
	"encoding/hex"
	"strconv"
	"testing"
	"time"

	rpcclient "github.com/cometbft/cometbft/rpc/client"
	cmttypes "github.com/cometbft/cometbft/types"
	sdkclient "github.com/cosmos/cosmos-sdk/client"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	clienttypes "github.com/cosmos/ibc-go/v11/modules/core/02-client/types"
	connectiontypes "github.com/cosmos/ibc-go/v11/modules/core/03-connection/types"
	channeltypes "github.com/cosmos/ibc-go/v11/modules/core/04-channel/types"
	commitmenttypes "github.com/cosmos/ibc-go/v11/modules/core/23-commitment/types"
	host "github.com/cosmos/ibc-go/v11/modules/core/24-host"
	ibcexported "github.com/cosmos/ibc-go/v11/modules/core/exported"
	tendermint "github.com/cosmos/ibc-go/v11/modules/light-clients/07-tendermint"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
)

// shore is one of two chains between which coins are transferred (ICS 20), with its light client of the other.
type shore struct {
	*network
	c       *client.Client // of the account that relays, and owns coins
	other   *shore
	codec   *wire.Encoding
	trusted uint64 // height of the other chain that the light client has seen last

	light, connection, channel string
}

func shores(t *testing.T) (a, b *shore) {
	t.Helper()
	codec, err := wire.NewEncoding()
	if err != nil {
		t.Fatal(err)
	}
	land := func(chainID string) *shore {
		n := startChain(t, chainID, "relayer")
		return &shore{network: n, c: n.clients["relayer"], codec: codec}
	}
	a, b = land("alpha-1"), land("beta-1")
	a.other, b.other = b, a
	return a, b
}

func (s *shore) at(height uint64) clienttypes.Height {
	return clienttypes.NewHeight(clienttypes.ParseChainID(s.config.ChainID), height)
}

// do submits a message and returns what an event of its transaction says.
func (s *shore) do(msg sdk.Msg, event, attribute string) string {
	s.t.Helper()
	r, err := s.c.Submit(s.ctx, msg)
	s.must(err)
	return s.said(r, event, attribute)
}

func (s *shore) said(r transaction.Result, event, attribute string) string {
	s.t.Helper()
	for _, e := range r.Events {
		for _, a := range e.Attributes {
			if e.Type == event && a.Key == attribute {
				return a.Value
			}
		}
	}
	s.t.Fatalf("%s: no %s in the transaction", event, attribute)
	return ""
}

// header is a signed header of this chain for the light client of the other.
func (s *shore) header(height int64) *tendermint.Header {
	s.t.Helper()
	commit, err := s.validator.Client().Commit(s.ctx, &height)
	s.must(err)
	h := &tendermint.Header{SignedHeader: commit.ToProto()}
	all, err := s.validator.Client().Validators(s.ctx, &height, nil, nil)
	s.must(err)
	set, err := cmttypes.ValidatorSetFromExistingValidators(all.Validators)
	s.must(err)
	h.ValidatorSet, err = set.ToProto()
	s.must(err)
	return h
}

// meet makes the light client that follows the other chain.
func (s *shore) meet() {
	s.t.Helper()
	h := s.other.header(s.other.height(s.other.c))
	s.trusted = h.GetHeight().GetRevisionHeight()
	state := tendermint.NewClientState(s.other.config.ChainID, tendermint.DefaultTrustLevel, 14*24*time.Hour,
		21*24*time.Hour, 10*time.Second,
		s.other.at(s.trusted), commitmenttypes.GetSDKSpecs(), []string{"upgrade", "upgradedIBCState"})
	msg, err := clienttypes.NewMsgCreateClient(state, h.ConsensusState(), s.c.Address())
	s.must(err)
	s.light = s.do(msg, clienttypes.EventTypeCreateClient, clienttypes.AttributeKeyClientID)
}

// learn updates the light client to a block of the other chain with its current state, and returns the proof of the
// value at a key, or of its absence.
func (s *shore) learn(key []byte) (proof []byte, at clienttypes.Height) {
	s.t.Helper()
	o := s.other
	stands := o.height(o.c)
	r, err := o.validator.Client().ABCIQueryWithOptions(s.ctx, "store/"+ibcexported.StoreKey+"/key", key,
		rpcclient.ABCIQueryOptions{Height: stands, Prove: true})
	s.must(err)
	merkle, err := commitmenttypes.ConvertProofs(r.Response.ProofOps)
	s.must(err)
	proof, err = merkle.Marshal()
	s.must(err)
	for o.height(o.c) <= stands { // the next header has the root of this state
	}
	h, before := o.header(stands+1), o.header(int64(s.trusted)+1)
	h.TrustedHeight, h.TrustedValidators = o.at(s.trusted), before.ValidatorSet
	msg, err := clienttypes.NewMsgUpdateClient(s.light, h, s.c.Address())
	s.must(err)
	s.do(msg, clienttypes.EventTypeUpdateClient, clienttypes.AttributeKeyClientID)
	s.trusted = uint64(stands) + 1
	return proof, o.at(s.trusted)
}

// join opens a connection and a channel between two chains that follow each other.
func join(a, b *shore) {
	a.t.Helper()
	prefix, versions := commitmenttypes.NewMerklePrefix([]byte(ibcexported.StoreKey)),
		connectiontypes.GetCompatibleVersions()
	const id = connectiontypes.AttributeKeyConnectionID
	a.connection = a.do(connectiontypes.NewMsgConnectionOpenInit(a.light, b.light, prefix, versions[0], 0, a.c.Address()),
		connectiontypes.EventTypeConnectionOpenInit, id)
	proof, at := b.learn(host.ConnectionKey(a.connection))
	b.connection = b.do(connectiontypes.NewMsgConnectionOpenTry(b.light, a.connection, a.light, prefix, versions, 0,
		proof, at, b.c.Address()), connectiontypes.EventTypeConnectionOpenTry, id)
	proof, at = a.learn(host.ConnectionKey(b.connection))
	a.do(connectiontypes.NewMsgConnectionOpenAck(a.connection, b.connection, proof, at, versions[0], a.c.Address()),
		connectiontypes.EventTypeConnectionOpenAck, id)
	proof, at = b.learn(host.ConnectionKey(a.connection))
	b.do(connectiontypes.NewMsgConnectionOpenConfirm(b.connection, proof, at, b.c.Address()),
		connectiontypes.EventTypeConnectionOpenConfirm, id)

	const port, version, order, channel = transfertypes.PortID, transfertypes.V1, channeltypes.UNORDERED,
		channeltypes.AttributeKeyChannelID
	a.channel = a.do(channeltypes.NewMsgChannelOpenInit(port, version, order, []string{a.connection}, port,
		a.c.Address()), channeltypes.EventTypeChannelOpenInit, channel)
	proof, at = b.learn(host.ChannelKey(port, a.channel))
	b.channel = b.do(channeltypes.NewMsgChannelOpenTry(port, version, order, []string{b.connection}, port, a.channel,
		version, proof, at, b.c.Address()), channeltypes.EventTypeChannelOpenTry, channel)
	proof, at = a.learn(host.ChannelKey(port, b.channel))
	a.do(channeltypes.NewMsgChannelOpenAck(port, a.channel, b.channel, version, proof, at, a.c.Address()),
		channeltypes.EventTypeChannelOpenAck, channel)
	proof, at = b.learn(host.ChannelKey(port, a.channel))
	b.do(channeltypes.NewMsgChannelOpenConfirm(port, b.channel, proof, at, b.c.Address()),
		channeltypes.EventTypeChannelOpenConfirm, channel)
}

// send sends coins to the account on the other chain, and returns the packet that is to be relayed.
func (s *shore) send(coin sdk.Coin, within time.Duration) channeltypes.Packet {
	s.t.Helper()
	until := uint64(time.Now().Add(within).UnixNano())
	r, err := s.c.Submit(s.ctx, transfertypes.NewMsgTransfer(transfertypes.PortID, s.channel, coin, s.c.Address(),
		s.other.c.Address(), clienttypes.ZeroHeight(), until, ""))
	s.must(err)
	data, err := hex.DecodeString(s.said(r, channeltypes.EventTypeSendPacket, channeltypes.AttributeKeyDataHex))
	s.must(err)
	sequence, err := strconv.ParseUint(s.said(r, channeltypes.EventTypeSendPacket, channeltypes.AttributeKeySequence), 10,
		64)
	s.must(err)
	return channeltypes.NewPacket(data, sequence, transfertypes.PortID, s.channel, transfertypes.PortID, s.other.channel,
		clienttypes.ZeroHeight(), until)
}

// receive relays a packet of the other chain to this one, and what came of it back.
func (s *shore) receive(p channeltypes.Packet) {
	s.t.Helper()
	proof, at := s.learn(host.PacketCommitmentKey(p.SourcePort, p.SourceChannel, p.Sequence))
	ack, err := hex.DecodeString(s.do(channeltypes.NewMsgRecvPacket(p, proof, at, s.c.Address()),
		channeltypes.EventTypeWriteAck, channeltypes.AttributeKeyAckHex))
	s.must(err)
	proof, at = s.other.learn(host.PacketAcknowledgementKey(p.DestinationPort, p.DestinationChannel, p.Sequence))
	s.other.do(channeltypes.NewMsgAcknowledgement(p, ack, proof, at, s.other.c.Address()),
		channeltypes.EventTypeAcknowledgePacket, channeltypes.AttributeKeySequence)
}

// holds checks what the account has of a denomination.
func (s *shore) holds(denom string, want int64) {
	s.t.Helper()
	conn := sdkclient.Context{}.WithClient(s.validator.Client()).WithCodec(s.codec.Codec).WithInterfaceRegistry(
		s.codec.Registry)
	r, err := banktypes.NewQueryClient(conn).Balance(s.ctx,
		&banktypes.QueryBalanceRequest{Address: s.c.Address(), Denom: denom})
	s.must(err)
	if r.Balance.Amount.Int64() != want {
		s.t.Errorf("%s: %s, want %d", s.config.ChainID, r.Balance, want)
	}
}

// Coins go to another of our chains as vouchers and come back; what was forged on the way is refused; what is not
// relayed in time comes back, too. The headers are those that validators signed, the proofs those that they serve.
func TestTransferBetweenChains(t *testing.T) {
	t.Parallel()
	a, b := shores(t)
	a.meet()
	b.meet()
	join(a, b)
	voucher := transfertypes.NewDenom(adapter.Denom, transfertypes.NewHop(transfertypes.PortID, b.channel)).IBCDenom()

	there := a.send(sdk.NewInt64Coin(adapter.Denom, 1000), time.Hour)
	a.holds(adapter.Denom, funds-1000)
	forged := there
	forged.Data = transfertypes.NewFungibleTokenPacketData(adapter.Denom, "9000", a.c.Address(), b.c.Address(),
		"").GetBytes()
	proof, at := b.learn(host.PacketCommitmentKey(there.SourcePort, there.SourceChannel, there.Sequence))
	if r, err := b.c.Submit(b.ctx, channeltypes.NewMsgRecvPacket(forged, proof, at, b.c.Address())); err == nil {
		t.Errorf("a forged packet is taken: %v", r.Events)
	}
	b.holds(voucher, 0)
	b.receive(there)
	if r, err := b.c.Submit(b.ctx, channeltypes.NewMsgRecvPacket(there, proof, at, b.c.Address())); err == nil {
		t.Errorf("a packet is taken twice: %v", r.Events)
	}
	b.holds(voucher, 1000)
	b.holds(adapter.Denom, funds)

	back := b.send(sdk.NewInt64Coin(voucher, 400), time.Hour)
	b.holds(voucher, 600)
	a.receive(back)
	a.holds(adapter.Denom, funds-600)

	lost := a.send(sdk.NewInt64Coin(adapter.Denom, 50), 500*time.Millisecond)
	a.holds(adapter.Denom, funds-650)
	for b.now().Before(time.Unix(0, int64(lost.TimeoutTimestamp))) {
		b.height(b.c)
	}
	proof, at = a.learn(host.PacketReceiptKey(lost.DestinationPort, lost.DestinationChannel, lost.Sequence))
	a.do(channeltypes.NewMsgTimeout(lost, 1, proof, at, a.c.Address()), channeltypes.EventTypeTimeoutPacket,
		channeltypes.AttributeKeySequence)
	a.holds(adapter.Denom, funds-600)
}

// now is the time of the latest block.
func (s *shore) now() time.Time {
	s.t.Helper()
	r, err := s.validator.Client().Status(s.ctx)
	s.must(err)
	return r.SyncInfo.LatestBlockTime
}
