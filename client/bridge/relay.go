package bridge

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	sdkquery "github.com/cosmos/cosmos-sdk/types/query"
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	clienttypes "github.com/cosmos/ibc-go/v11/modules/core/02-client/types"
	channeltypes "github.com/cosmos/ibc-go/v11/modules/core/04-channel/types"
	host "github.com/cosmos/ibc-go/v11/modules/core/24-host"

	"github.com/starling-network/starling/client/query"
)

// ErrNotFound is returned if the index of a validator lacks a packet or its acknowledgement: it keeps no index, or
// began to after the packet.
var ErrNotFound = errors.New("bridge: the validator's index of transactions lacks it")

// Relay relays the packets that wait on one network to the other, acknowledges those that arrived, and returns those
// that are too late to their senders. It returns how many it moved, and why the first of the others was not: a packet
// that cannot be moved holds up none of the rest. Another relay may do the same at the same time.
func Relay(ctx context.Context, from, to *Shore) (moved int, err error) {
	var first error
	err = query.Pages(func(page *sdkquery.PageRequest) (*sdkquery.PageResponse, error) {
		r, err := channeltypes.NewQueryClient(from.Account).PacketCommitments(ctx,
			&channeltypes.QueryPacketCommitmentsRequest{PortId: transfertypes.PortID, ChannelId: from.End.Channel,
				Pagination: page})
		for _, c := range r.GetCommitments() {
			failed := move(ctx, from, to, c.Sequence)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if failed == nil {
				moved++
			} else if first == nil {
				first = fmt.Errorf("bridge: packet %d: %w", c.Sequence, failed)
			}
		}
		return r.GetPagination(), err
	})
	return moved, errors.Join(first, err)
}

// move does the next step for a packet that waits, unless another relay did.
func move(ctx context.Context, from, to *Shore, sequence uint64) error {
	p, err := from.packet(ctx, to, sequence)
	if err != nil {
		return err
	}
	if err := relay(ctx, from, to, p); err != nil {
		if gone, failed := from.settled(ctx, to, p); failed != nil || !gone {
			return errors.Join(err, failed)
		}
	}
	return nil
}

// settled reports whether another relay did the step for a packet: it is not committed any more, or was received.
func (s *Shore) settled(ctx context.Context, to *Shore, p channeltypes.Packet) (bool, error) {
	received, err := to.received(ctx, p.Sequence)
	if err != nil || received {
		return received, err
	}
	_, err = channeltypes.NewQueryClient(s.Account).PacketCommitment(ctx, &channeltypes.QueryPacketCommitmentRequest{
		PortId: transfertypes.PortID, ChannelId: s.End.Channel, Sequence: p.Sequence})
	return err != nil, nil
}

func (s *Shore) received(ctx context.Context, sequence uint64) (bool, error) {
	r, err := channeltypes.NewQueryClient(s.Account).PacketReceipt(ctx, &channeltypes.QueryPacketReceiptRequest{
		PortId: transfertypes.PortID, ChannelId: s.End.Channel, Sequence: sequence})
	return r.GetReceived(), err
}

// relay does the next step for a packet that waits.
func relay(ctx context.Context, from, to *Shore, p channeltypes.Packet) error {
	received, err := to.received(ctx, p.Sequence)
	if err != nil {
		return err
	}
	if received {
		return acknowledge(ctx, from, to, p)
	}
	_, now, err := to.height(ctx)
	if err != nil {
		return err
	}
	if !now.Before(time.Unix(0, int64(p.TimeoutTimestamp))) {
		proof, at, err := from.learn(ctx, to, host.PacketReceiptKey(p.DestinationPort, p.DestinationChannel, p.Sequence))
		if err != nil {
			return err
		}
		_, err = from.Account.Submit(ctx, channeltypes.NewMsgTimeout(p, 1, proof, at, from.Account.Address()))
		return err
	}
	return Deliver(ctx, from, to, p)
}

// Deliver delivers a packet with the proof that the sending network has it.
func Deliver(ctx context.Context, from, to *Shore, p channeltypes.Packet) error {
	proof, at, err := to.learn(ctx, from, host.PacketCommitmentKey(p.SourcePort, p.SourceChannel, p.Sequence))
	if err != nil {
		return err
	}
	_, err = to.Account.Submit(ctx, channeltypes.NewMsgRecvPacket(p, proof, at, to.Account.Address()))
	return err
}

// acknowledge lets the sending network know what became of a packet.
func acknowledge(ctx context.Context, from, to *Shore, p channeltypes.Packet) error {
	event, err := to.event(ctx, channeltypes.EventTypeWriteAck, channeltypes.AttributeKeyDstChannel, p.Sequence)
	if err != nil {
		return err
	}
	ack, err := hex.DecodeString(event[channeltypes.AttributeKeyAckHex])
	if err != nil {
		return err
	}
	proof, at, err := from.learn(ctx, to, host.PacketAcknowledgementKey(p.DestinationPort, p.DestinationChannel,
		p.Sequence))
	if err != nil {
		return err
	}
	_, err = from.Account.Submit(ctx, channeltypes.NewMsgAcknowledgement(p, ack, proof, at, from.Account.Address()))
	return err
}

// packet is a packet that this network sent, from the index of its validator. A wrong one is refused by the other
// network, which has its digest.
func (s *Shore) packet(ctx context.Context, to *Shore, sequence uint64) (p channeltypes.Packet, err error) {
	event, err := s.event(ctx, channeltypes.EventTypeSendPacket, channeltypes.AttributeKeySrcChannel, sequence)
	if err != nil {
		return p, err
	}
	data, err := hex.DecodeString(event[channeltypes.AttributeKeyDataHex])
	if err != nil {
		return p, err
	}
	until, err := strconv.ParseUint(event[channeltypes.AttributeKeyTimeoutTimestamp], 10, 64)
	return channeltypes.NewPacket(data, sequence, transfertypes.PortID, s.End.Channel, transfertypes.PortID,
		to.End.Channel, clienttypes.ZeroHeight(), until), err
}

// event is the attributes of the event about a packet of the bridge.
func (s *Shore) event(ctx context.Context, kind, channel string, sequence uint64) (map[string]string, error) {
	for tries := 0; ; tries++ { // an index is written a moment after its block
		about, err := s.indexed(ctx, kind, channel, strconv.FormatUint(sequence, 10))
		if about != nil || err != nil {
			return about, err
		}
		if tries == indexTries {
			return nil, fmt.Errorf("%w: %s %d of %s", ErrNotFound, kind, sequence, s.End.Channel)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(indexPause):
		}
	}
}

// Times that an index is asked for a packet, and the time between two.
const (
	indexTries = 30
	indexPause = 100 * time.Millisecond
)

// indexed is event, from the index as it is; nil if it lacks the event.
func (s *Shore) indexed(ctx context.Context, kind, channel, number string) (map[string]string, error) {
	r, err := s.RPC.TxSearch(ctx, fmt.Sprintf("%s.%s='%s' AND %s.%s='%s'", kind, channel, s.End.Channel, kind,
		channeltypes.AttributeKeySequence, number), false, nil, nil, "desc")
	if err != nil {
		return nil, err
	}
	for _, tx := range r.Txs {
		for _, e := range tx.TxResult.Events {
			about := map[string]string{}
			for _, a := range e.Attributes {
				about[a.Key] = a.Value
			}
			if e.Type == kind && about[channel] == s.End.Channel && about[channeltypes.AttributeKeySequence] == number {
				return about, nil
			}
		}
	}
	return nil, nil
}
