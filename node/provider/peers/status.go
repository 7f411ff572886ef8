package peers

import "github.com/starling-network/starling/network/peer/link"

// Status is what a party knows of the way to a peer.
type Status struct {
	Peer      string  `json:"peer"`
	Address   string  `json:"address,omitempty"` // of the connection, if there is one
	Relayed   bool    `json:"relayed"`
	RoundTrip float64 `json:"round_trip_seconds"`        // 0: not known
	Download  float64 `json:"download_bytes_per_second"` // 0: not known
	Sent      uint64  `json:"sent_bytes"`
	Received  uint64  `json:"received_bytes"`
}

// StatusOf is the status of a link.
func StatusOf(l link.State) Status {
	return Status{
		Peer: l.Peer.String(), Address: l.Addr, Relayed: l.Relayed, RoundTrip: l.RoundTrip.Seconds(), Download: l.Download,
		Sent: l.Sent, Received: l.Received,
	}
}
