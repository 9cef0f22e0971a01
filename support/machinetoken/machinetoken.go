// SPDX-License-Identifier: Apache-2.0

// Package machinetoken derives a token for a single machine from the token that all machines of a pool share.
//
// A provider that writes the user-data of single machines replaces the pool's token with the machine's. The
// ignition-server knows the pool's token, and can therefore identify the requesting machine. A machine's token reveals
// neither the pool's token nor the token of another machine.
package machinetoken

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

const (
	// prefix is the prefix of the tokens of machines; those of pools are UUIDs.
	prefix = "machine"
	// purpose separates this digest from others that may be derived from a pool's token later.
	purpose = "hypershift.openshift.io/machine-token\n"
)

// Derive returns the token of a Machine. machine is its name in Cluster API.
func Derive(pool []byte, machine string) string {
	mac := hmac.New(sha256.New, pool)
	mac.Write([]byte(purpose + machine))
	return strings.Join([]string{prefix, machine, hex.EncodeToString(mac.Sum(nil))}, ":")
}

// Machine returns the name of the Machine in a token; false for a token of a pool. Verify checks that the token is
// genuine.
func Machine(token string) (string, bool) {
	parts := strings.Split(token, ":")
	if len(parts) != 3 || parts[0] != prefix || parts[1] == "" {
		return "", false
	}
	return parts[1], true
}

// Verify reports whether the token of a machine was derived from a pool's token.
func Verify(token string, pool []byte) bool {
	machine, ok := Machine(token)
	return ok && len(pool) > 0 && hmac.Equal([]byte(token), []byte(Derive(pool, machine)))
}

// Personalize replaces the pool's token in user-data with the Machine's. The user-data has the pool's token as the
// base64 of a bearer token.
func Personalize(userData, pool []byte, machine string) []byte {
	if len(pool) == 0 {
		return userData
	}
	return bytes.ReplaceAll(userData, bearer(pool), bearer([]byte(Derive(pool, machine))))
}

func bearer(token []byte) []byte {
	return []byte("Bearer " + base64.StdEncoding.EncodeToString(token))
}
