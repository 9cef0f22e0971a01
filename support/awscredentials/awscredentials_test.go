// SPDX-License-Identifier: Apache-2.0

package awscredentials_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/awscredentials"
)

const keys = "aws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = hunter2/+=\n"

func TestParse(t *testing.T) {
	want := awscredentials.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "hunter2/+="}
	session := want
	session.SessionToken = "hunter3"
	for name, tc := range map[string]struct {
		file string
		want awscredentials.Credentials
	}{
		"keys":              {"[default]\n" + keys, want},
		"keys of a session": {"[default]\n" + keys + "aws_session_token=hunter3\n", session},
		"a region and comments": {"# mine\n; too\n[default] # x\r\n" + keys +
			"region = eu-west-1\noutput=json\n", want},
		"another profile that runs a program": {"[other]\ncredential_process = /bin/sh\n[default]\n" + keys, want},
		"a comment after a value": {
			"[default]\naws_access_key_id = AKIDEXAMPLE # mine\nAWS_SECRET_ACCESS_KEY = hunter2/+=\n", want},
	} {
		t.Run("takes "+name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(awscredentials.Parse([]byte(tc.file))).To(Equal(tc.want))
		})
	}
	for _, key := range []string{
		"credential_process", "source_profile", "role_arn", "credential_source", "web_identity_token_file", "sso_session",
		"sso_start_url",
		"ca_bundle", "endpoint_url", "services",
	} {
		t.Run("refuses "+key+" and names it", func(t *testing.T) {
			g := NewWithT(t)
			_, err := awscredentials.Parse([]byte("[default]\n" + keys + key + " = hunter2\n"))
			g.Expect(err).To(MatchError(And(ContainSubstring("line 4"), ContainSubstring(key+" is refused"),
				Not(ContainSubstring("hunter2")))))
		})
	}
	for name, file := range map[string]string{
		"nothing":                          "",
		"a file without the profile":       "[backup]\n" + keys,
		"keys before any profile":          keys,
		"a profile without the secret key": "[default]\naws_access_key_id = hunter2\n",
		"a line that is not an assignment": "[default]\nhunter2\n" + keys,
		"a secret as the name of a key":    "[default]\n" + keys + "AKIDhunter2 = x\n",
		"lines below another":              "[default]\n" + keys + " credential_process = hunter2\n",
		"a value with a space":             "[default]\naws_access_key_id = hunter2 hunter2\naws_secret_access_key = x\n",
		"a value with a carriage return":   "[default]\naws_access_key_id = hunter2\rcredential_process=x\naws_secret_access_key = x\n",
		"a large file":                     "[default]\n" + keys + strings.Repeat("#", 1<<20),
	} {
		t.Run("refuses "+name+" and prints none of its content", func(t *testing.T) {
			_, err := awscredentials.Parse([]byte(file))
			NewWithT(t).Expect(err).To(MatchError(Not(ContainSubstring("hunter2"))))
		})
	}
}

// FuzzParse parses arbitrary files. The parsed values contain only visible characters, and do not change when they are
// written and parsed again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"[default]\n" + keys, "[default]\n" + keys + "credential_process = /bin/sh\n", "[default]\r\n" + keys +
			"\taws_session_token = x\n",
		"[[default]]\n" + keys, "[default\n" + keys, "[default]\n=\n", "[default]\n \n" + keys, keys,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := awscredentials.Parse(file)
		if err != nil {
			return
		}
		written := fmt.Sprintf("[default]\naws_access_key_id=%s\naws_secret_access_key=%s\naws_session_token=%s\n",
			got.AccessKeyID, got.SecretAccessKey, got.SessionToken)
		if again, err := awscredentials.Parse([]byte(written)); err != nil || again != got {
			t.Fatalf("read again it is %+v, %v, and was %+v", again, err, got)
		}
	})
}
