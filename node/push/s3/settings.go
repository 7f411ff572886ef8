package s3

import (
	"bufio"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/node/push/parcel"
)

// Target is a folder of a bucket.
type Target struct {
	Bucket string
	Prefix string // "": the bucket itself
}

// Key is the name of an object.
func (t Target) Key(name string) string {
	if t.Prefix == "" {
		return name
	}
	return t.Prefix + "/" + name
}

// Settings say where a store is, and how requests to it are signed.
type Settings struct {
	Endpoint *url.URL // nil: Amazon's for the region
	Region   string
	Keys     Keys
}

// FromEnvironment reads the variables that AWS's own tools read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN, or else the section AWS_PROFILE of AWS_SHARED_CREDENTIALS_FILE; AWS_REGION or
// AWS_DEFAULT_REGION; AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL.
func FromEnvironment() (s Settings, err error) {
	s.Region = first("AWS_REGION", "AWS_DEFAULT_REGION")
	if s.Region == "" {
		s.Region = "us-east-1"
	}
	if address := first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"); address != "" {
		u, err := url.Parse(strings.TrimSuffix(address, "/"))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
			return s, &parcel.Error{Code: parcel.BadTarget, What: "AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is no address",
				Fix: "write it as https://HOST, without credentials"}
		}
		s.Endpoint = u
	}
	s.Keys = Keys{Access: os.Getenv("AWS_ACCESS_KEY_ID"), Secret: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		Session: os.Getenv("AWS_SESSION_TOKEN")}
	if s.Keys.Access != "" && s.Keys.Secret != "" {
		return s, nil
	}
	if s.Keys, err = shared(); err != nil {
		return s, err
	}
	return s, nil
}

func first(names ...string) string {
	for _, name := range names {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// shared reads the keys from the file of AWS's tools.
func shared() (Keys, error) {
	missing := func(cause error) error {
		return &parcel.Error{Code: parcel.Credentials, What: "there are no credentials for S3", Err: cause,
			Fix: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a section of ~/.aws/credentials"}
	}
	path := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if path == "" {
		dir, err := os.UserHomeDir()
		if err != nil {
			return Keys{}, missing(nil)
		}
		path = filepath.Join(dir, ".aws", "credentials")
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Keys{}, missing(nil)
	}
	if err != nil {
		return Keys{}, missing(err)
	}
	defer f.Close()
	profile := first("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
	if profile == "" {
		profile = "default"
	}
	var k Keys
	inside := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			inside = strings.TrimSpace(strings.Trim(line, "[]")) == profile
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !inside || !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			k.Access = value
		case "aws_secret_access_key":
			k.Secret = value
		case "aws_session_token":
			k.Session = value
		}
	}
	if k.Access == "" || k.Secret == "" {
		return Keys{}, missing(errors.New(path + " has no keys in the section " + profile))
	}
	return k, nil
}
