// SPDX-License-Identifier: Apache-2.0

// Package awscredentials parses AWS credentials files that a tenant provides. The AWS libraries run the program that
// such a file names (credential_process), read other files and profiles, and call other services. This package reads
// only keys.
package awscredentials

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// DefaultProfile is the profile that Parse reads.
const DefaultProfile = "default"

// maxSize is the maximum size of a credentials file, in bytes.
const maxSize = 64 << 10

// Credentials holds the access keys of one user, and a session token if the keys belong to a session.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
}

// knownKey matches keys whose names an error may repeat. Anything else may be a misplaced secret.
var knownKey = regexp.MustCompile(`^[a-z_]{1,40}$`)

// ignored lists the keys of a profile that do not affect which credentials are used.
var ignored = map[string]bool{"region": true, "output": true}

// advice names the keys that a profile may contain.
const advice = "use aws_access_key_id, aws_secret_access_key and aws_session_token"

// Parse reads the profile "default". Its errors contain no values.
func Parse(file []byte) (Credentials, error) {
	credentials := Credentials{}
	if len(file) > maxSize {
		return credentials, fmt.Errorf("the AWS credentials file is larger than %d bytes", maxSize)
	}
	section := ""
	for i, line := range strings.Split(string(file), "\n") {
		line = strings.TrimSuffix(line, "\r")
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
			continue
		case text[0] == '[':
			section = strings.TrimSpace(strings.Trim(stripComment(text), "[]"))
			continue
		case section != DefaultProfile:
			continue
		}
		if err := credentials.set(line); err != nil {
			return Credentials{}, fmt.Errorf("line %d of the AWS credentials file: %w", i+1, err)
		}
	}
	if credentials.AccessKeyID == "" || credentials.SecretAccessKey == "" {
		return Credentials{}, fmt.Errorf(
			"it is not an AWS credentials file with a profile [%s] that has aws_access_key_id and aws_secret_access_key",
			DefaultProfile)
	}
	return credentials, nil
}

// set parses one line of the profile.
func (c *Credentials) set(line string) error {
	key, value, found := strings.Cut(line, "=")
	if !found || unicode.IsSpace(rune(line[0])) {
		return fmt.Errorf("it is not of the form key = value; %s", advice)
	}
	key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(stripComment(value))
	if ignored[key] {
		return nil
	}
	target := map[string]*string{
		"aws_access_key_id": &c.AccessKeyID, "aws_secret_access_key": &c.SecretAccessKey,
		"aws_session_token": &c.SessionToken,
	}[key]
	if target == nil {
		if !knownKey.MatchString(key) {
			key = "its key"
		}
		return fmt.Errorf("%s is refused, since it may run programs, read files or call services; %s", key, advice)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("the value of %s has spaces or characters that no key has", key)
	}
	*target = value
	return nil
}

// stripComment removes a comment that follows a value and a space or tab.
func stripComment(text string) string {
	for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
		text, _, _ = strings.Cut(text, mark)
	}
	return text
}
