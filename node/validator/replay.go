package validator

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/consumer"
)

// ReplayJournal plays a journal back. One of a worker that plants faults, or of a verifier that watches, has to lie in
// the folder of its key.
func ReplayJournal(path string) (*journal.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return journal.Replay(f, func(h journal.Header) (func(role.Event) []role.Action, error) {
		switch {
		case h.Role == member.RoleConsumer:
			return consumer.New(h.Next).Step, nil
		case h.Role != crew.Worker.String() && h.Role != crew.Verifier.String():
			return nil, fmt.Errorf("%w: there is no role %q", journal.ErrFormat, h.Role)
		case !h.Plants && !h.Watches:
			return member.Cast(h, home.Home{}), nil
		}
		party, err := home.Read(filepath.Dir(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		return member.Cast(h, party), nil
	})
}
