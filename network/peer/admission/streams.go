package admission

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/peer/wire"
)

// streamsIn is how many blob streams one peer may keep open here: somewhat more than ours ever open.
const streamsIn = 2 * wire.StreamsOut

// mostStreams are those of all peers of a standing together.
var mostStreams = [standings]int{Stranger: 128, Participant: 512, Member: 2048}

// Streams are the blob streams that peers have open here, by standing, in the order of their opening.
type Streams struct {
	mu      sync.Mutex
	streams [standings][]network.Stream
}

// Admit takes a stream in, or reports that its peer has too many. Where those of a standing have too many together, the
// oldest of the peer that has most is closed for it.
func (a *Streams) Admit(s network.Stream, standing Standing) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := make(map[peer.ID]int)
	for _, list := range a.streams {
		for _, other := range list {
			of[other.Conn().RemotePeer()]++
		}
	}
	if of[s.Conn().RemotePeer()] >= streamsIn {
		return false
	}
	list := append(a.streams[standing], s)
	if len(list) > mostStreams[standing] {
		worst := 0
		for i, other := range list {
			if of[other.Conn().RemotePeer()] > of[list[worst].Conn().RemotePeer()] {
				worst = i
			}
		}
		closed := list[worst]
		list = append(list[:worst:worst], list[worst+1:]...)
		go closed.Reset()
	}
	a.streams[standing] = list
	return true
}

// Leave takes a stream out.
func (a *Streams) Leave(s network.Stream, standing Standing) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, other := range a.streams[standing] {
		if other == s {
			a.streams[standing] = append(a.streams[standing][:i:i], a.streams[standing][i+1:]...)
			return
		}
	}
}
