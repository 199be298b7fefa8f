package main

import "testing"

func TestParseNewUser(t *testing.T) {
	for _, c := range []struct{ body, name, email string }{
		{`{"name":"Ada","email":"ada@x"}`, "Ada", "ada@x"},
		{` {"email":"@","name":" "} `, " ", "@"},
		{`{"name":"\u00e9\n\"\\","email":"a@x"}`, "é\n\"\\", "a@x"},
		{`{"name":"A","email":"a@x","name":"B"}`, "B", "a@x"},
		{`{"n\u0061me":"A","email":"a@x"}`, "A", "a@x"},
		{`{"id":7,"n":1e999,"x":[{"y":[null]}],"name":"A","email":"a@x"}`, "A", "a@x"},
	} {
		got, refused := parseNewUser([]byte(c.body))
		if refused != nil || got != (newUser{name: c.name, email: c.email}) {
			t.Errorf("%s: got %+v, %v", c.body, got, refused)
		}
	}
}

func TestParseNewUserRefuses(t *testing.T) {
	for _, c := range []struct {
		body string
		want *refusal
	}{
		{"", &invalidJSON},
		{"null", &invalidJSON},
		{"1", &invalidJSON},
		{`"name"`, &invalidJSON},
		{`["Ada","ada@x"]`, &invalidJSON},
		{`{"name":"A","email":"a@x"`, &invalidJSON},
		{`{"name":"A","email":"a@x"} x`, &invalidJSON},
		{`{"name":"A","email":"a@x",}`, &invalidJSON},
		{"\xef\xbb\xbf{}", &invalidJSON},
		{"{\"name\":\"\xff\",\"email\":\"a@x\"}", &invalidJSON},
		{"{\"name\":\"A\",\"email\":\"a@x\",\"z\":\"\xff\"}", &invalidJSON},
		{"{\"name\":\"A\nB\",\"email\":\"a@x\"}", &invalidJSON},
		{"{}", &nameRequired},
		{`{"Name":"A","email":"a@x"}`, &nameRequired},
		{`{"name":"","email":"a@x"}`, &nameRequired},
		{`{"name":null,"email":"a@x"}`, &nameRequired},
		{`{"name":7,"email":7}`, &nameRequired},
		{`{"name":["A"],"email":"a@x"}`, &nameRequired},
		{`{"name":"A"}`, &invalidEmail},
		{`{"name":"A","EMAIL":"a@x"}`, &invalidEmail},
		{`{"name":"A","email":null}`, &invalidEmail},
		{`{"name":"A","email":"a"}`, &invalidEmail},
	} {
		if got, refused := parseNewUser([]byte(c.body)); refused != c.want {
			t.Errorf("%q: got %+v, %v", c.body, got, refused)
		}
	}
}
