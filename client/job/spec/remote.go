package spec

import (
	"net/url"
	"os"
	"path/filepath"
)

// IsWeb reports whether a text is the address of something on a web server.
func IsWeb(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Remote reports whether the data set is a file on a web server.
func (d Dataset) Remote() bool { return IsWeb(d.Path) }

// Cached is where a file of that digest lies once it is downloaded, in the cache of this user.
func (d Dataset) Cached() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "starling", "data", d.SHA256), err
}
