package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/internal/keyfile"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
)

// keys looks at the secret of the party's folder.
func keys(_ context.Context, o Options) Finding {
	if o.Home == "" {
		return Finding{Level: OK, Text: "not looked at: no folder of a party was named"}
	}
	h, err := home.Read(o.Home)
	switch {
	case errors.Is(err, home.ErrNoKey):
		return Finding{Level: Warn, Text: o.Home + " holds no key yet",
			Fix: "make or restore it with starling worker identity --home " + o.Home}
	case errors.Is(err, keyfile.ErrLocked), errors.Is(err, keyfile.ErrPassphrase):
		return Finding{Level: Warn, Text: err.Error(), Fix: "give its passphrase with --passphrase-file"}
	case err != nil:
		return Finding{Level: Fail, Text: err.Error(), Fix: "restore the folder from its backup phrase in another place"}
	}
	f := Finding{Level: OK, Text: "account " + h.Account().Address()}
	for _, path := range []string{filepath.Join(o.Home, home.FileKey), o.Home} {
		info, err := os.Stat(path)
		if err != nil {
			return Finding{Level: Fail, Text: err.Error(), Fix: "make the folder readable for its owner"}
		}
		others := os.FileMode(0o077)
		if info.IsDir() {
			others = 0o022 // to look into the folder gives nothing away
		}
		if info.Mode().Perm()&others != 0 {
			f.Level, f.Text, f.Fix = Warn, fmt.Sprintf("others may use %s (%s)", path, info.Mode().Perm()),
				"take their rights away: chmod go-rwx "+path
		}
	}
	return f
}

// lock says whether a process runs over the party's folder.
func lock(_ context.Context, o Options) Finding {
	if o.Home == "" {
		return Finding{Level: OK, Text: "not looked at: no folder of a party was named"}
	}
	if _, err := os.Stat(o.Home); err != nil {
		return Finding{Level: OK, Text: "no process runs over " + o.Home}
	}
	unlock, err := folder.Lock(o.Home)
	switch {
	case errors.Is(err, folder.ErrInUse):
		return Finding{Level: Warn, Text: "a process runs over " + o.Home,
			Fix: "ask it with starling worker status; end it with starling worker drain before another is started there"}
	case err != nil:
		return Finding{Level: Fail, Text: err.Error(), Fix: "make the folder writable for its owner"}
	}
	if err := unlock(); err != nil {
		return Finding{Level: Fail, Text: err.Error(), Fix: "make the folder writable for its owner"}
	}
	return Finding{Level: OK, Text: "no process runs over " + o.Home}
}
