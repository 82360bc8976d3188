// The header of the DSL behind macros that headers of Windows, X11 and the C library define.
#include <bits/stdc++.h> // the standard headers do not allow such macros, so they come first

#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define small char
#define near
#define far
#define interface struct
#define ERROR 0
#define IN
#define OUT
#define TRUE 1
#define FALSE 0
#define CONST const
#define VOID void
#define DELETE 0x10000
#define OPAQUE 2
#define TRANSPARENT 1
#define NO_ERROR 0
#define None 0L
#define Bool int
#define Status int
#define Always 2
#define I _Complex_I
#define major(device) gnu_dev_major(device)
#define minor(device) gnu_dev_minor(device)
#define linux 1
#define unix 1
#include <scalide/generator.h>

class Macros : public scalide::Generator<Macros> {
public:
    scalide::Input<scalide::Tensor> x{"x", scalide::f32, {"b", 8}}, y{"y", scalide::f32, {"b", 8}};
    scalide::Output<scalide::Tensor> larger{"larger", scalide::f32, {"b", 8}};
    void generate() override { larger = (scalide::max)(x, y); }
};
SCALIDE_REGISTER_GENERATOR(Macros, macros)
