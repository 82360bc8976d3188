//! Fits y = x * w to four points. The program `fit` is linked statically, and so is the runtime.
mod scalide;
use scalide::{Array, Binding, Context, Program};

#[link(name = "fit", kind = "static")]
#[link(name = "scalide_runtime", kind = "static")]
extern "C" {
    fn fit_program() -> *const Program;
}

fn main() -> Result<(), String> {
    let program = unsafe { &*fit_program() };
    let context = Context::new()?;
    let mut x = Array::new(&[4, 2], &[0.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0]);
    let mut y = Array::new(&[4], &[1.0, 3.0, 1.0, -1.0]);
    let (mut w, mut loss) = (Array::new(&[2], &[0.0, 0.0]), Array::new(&[], &[0.0]));

    let mut step = Binding::new(&context, program, vec![&mut x, &mut y, &mut w, &mut loss])?;
    for _ in 0..100 {
        step.run()?;
    }
    drop(step); // the arrays are no longer borrowed
    println!("w = {:.3} {:.3}, loss {:.6}", w.values()[0], w.values()[1], loss.values()[0]);
    assert!((w.values()[0] - 2.0).abs() < 1e-3 && (w.values()[1] - 1.0).abs() < 1e-3);

    let mut short = Array::new(&[3], &[1.0, 3.0, 1.0]);
    if let Err(message) = Binding::new(&context, program, vec![&mut x, &mut short, &mut w, &mut loss]) {
        println!("a wrong shape: {}", message);
    }
    Ok(())
}
