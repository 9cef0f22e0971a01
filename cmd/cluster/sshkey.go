// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math/big"
)

const sshKeyBits = 3072

// generateSSHKey creates a key pair in formats that OpenSSH reads.
func generateSSHKey() (private, public []byte, err error) {
	key, err := rsa.GenerateKey(rand.Reader, sshKeyBits)
	if err != nil {
		return nil, nil, fmt.Errorf("make an SSH key: %w", err)
	}
	private = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	var wire []byte
	for _, part := range [][]byte{[]byte("ssh-rsa"), positive(big.NewInt(int64(key.E))), positive(key.N)} {
		wire = binary.BigEndian.AppendUint32(wire, uint32(len(part))) //nolint:gosec // half a KiB at most
		wire = append(wire, part...)
	}
	return private, fmt.Appendf(nil, "ssh-rsa %s\n", base64.StdEncoding.EncodeToString(wire)), nil
}

// positive encodes the number as in RFC 4251: a leading zero byte keeps it from being read as negative.
func positive(n *big.Int) []byte {
	if n.BitLen()%8 == 0 {
		return append([]byte{0}, n.Bytes()...)
	}
	return n.Bytes()
}
